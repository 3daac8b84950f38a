const ESCAPED_SHORT = new Set(['"', '\\', '\b', '\f', '\n', '\r', '\t']);

/** Bytes of a text as JSON in UTF-8, including its quotes. */
export function jsonBytes(text: string): number {
  let bytes = 2;
  for (const char of text) bytes += charJsonBytes(char);
  return bytes;
}

/** Bytes of one character (a code point) inside a JSON string in UTF-8. */
export function charJsonBytes(char: string): number {
  const point = char.codePointAt(0) ?? 0;
  if (ESCAPED_SHORT.has(char)) return 2;
  // JSON.stringify writes control characters and lone surrogates as six bytes: `\u0000`.
  if (point < 0x20 || (point >= 0xd800 && point <= 0xdfff)) return 6;
  return pointBytes(point);
}

/** Bytes of a text in UTF-8. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const char of text) bytes += pointBytes(char.codePointAt(0) ?? 0);
  return bytes;
}

function pointBytes(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
}
