/** The bytes of a base64 text, with or without padding; null if it is none. */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  // Node leaves out what it cannot read.
  const digits = text.endsWith('==') ? text.length - 2 : text.length - Number(text.endsWith('='));
  return bytes.length === Math.floor((digits * 3) / 4) && digits % 4 !== 1 ? bytes : null;
}
