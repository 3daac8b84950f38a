const BEYOND_ASCII = /[^\x00-\x7f]/;
const LAST_ASCII = 0x7f;
const ESCAPE_BYTES = 6;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const HEX = Buffer.from('0123456789abcdef');

/**
 * The same JSON with every non-ASCII code unit as `\uxxxx`, so that readers which split lines at U+2028,
 * U+2029 or U+0085 see one line (docs/design/api-contract.md#ascii-output). Outside strings, valid JSON is
 * ASCII, so all other tokens stay as they are.
 */
export function asciiJson(json: string): Buffer {
  const bytes = Buffer.allocUnsafe(json.length + (ESCAPE_BYTES - 1) * countBeyondAscii(json));
  let at = 0;
  // A loop is 3 times faster than `replace` for text that is mostly not ASCII.
  for (let i = 0; i < json.length; i++) {
    const unit = json.charCodeAt(i);
    if (unit <= LAST_ASCII) bytes[at++] = unit;
    else at = writeEscape(bytes, at, unit);
  }
  return bytes;
}

/** The JSON text of a string, ASCII only; lone surrogates become escapes. */
export function asciiJsonString(text: string): string {
  const json = JSON.stringify(text);
  return BEYOND_ASCII.test(json) ? asciiJson(json).toString('latin1') : json;
}

function countBeyondAscii(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > LAST_ASCII) count++;
  return count;
}

function writeEscape(bytes: Buffer, at: number, unit: number): number {
  bytes[at] = BACKSLASH;
  bytes[at + 1] = LETTER_U;
  bytes[at + 2] = HEX[unit >>> 12] ?? 0;
  bytes[at + 3] = HEX[(unit >>> 8) & 0xf] ?? 0;
  bytes[at + 4] = HEX[(unit >>> 4) & 0xf] ?? 0;
  bytes[at + 5] = HEX[unit & 0xf] ?? 0;
  return at + ESCAPE_BYTES;
}
