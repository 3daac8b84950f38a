/** Bytes of JSON. The functions of this file require valid JSON and do not check it. */
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
/** Outside strings, exactly the four white-space bytes of JSON are at or below this. */
export const LAST_BLANK = 0x20;

/** A call of the native search costs as much as a loop over this many bytes, and most keys are shorter. */
const NEAR_BYTES = 24;

/**
 * Position of the quote that ends the string whose opening quote is at `open`.
 * @throws RangeError if there is none
 */
export function stringEnd(json: Buffer, open: number): number {
  const near = Math.min(json.length, open + 1 + NEAR_BYTES);
  for (let at = open + 1; at < near; at++) {
    const byte = json[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return farStringEnd(json, open);
}

/** Finds quotes natively; a quote ends the string if an even number of backslashes precedes it. */
function farStringEnd(json: Buffer, open: number): number {
  let quote = json.indexOf(QUOTE, open + 1);
  while (quote !== -1) {
    let slashes = 0;
    while (json[quote - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote;
    quote = json.indexOf(QUOTE, quote + 1);
  }
  throw new RangeError('string without an end');
}

/** First position at or after `at` that is not white space. */
export function skipBlanks(json: Buffer, at: number): number {
  while (at < json.length && (json[at] ?? 0) <= LAST_BLANK) at++;
  return at;
}

/** Position after the value that begins at `at`. @throws RangeError if it does not end */
export function valueEnd(json: Buffer, at: number): number {
  const first = json[at];
  if (first === QUOTE) return stringEnd(json, at) + 1;
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return nestedEnd(json, at);
  while (at < json.length && !endsScalar(json[at] ?? 0)) at++;
  return at;
}

function nestedEnd(json: Buffer, open: number): number {
  let depth = 0;
  for (let at = open; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = stringEnd(json, at);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at + 1;
  }
  throw new RangeError('value without an end');
}

function endsScalar(byte: number): boolean {
  return byte <= LAST_BLANK || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
}
