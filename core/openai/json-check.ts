import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json-bytes';
import { blanksEnd, NONE, scalarEnd, textEnd } from './json-tokens';

/** Bounds of what a JSON text costs its parser (docs/design/batch-path.md#json-bounds). */
export interface JsonLimits {
  /** Nested objects and arrays. */
  readonly maxDepth: number;
  /** Each comma counts 1; each object, array, member, and string counts {@link HEAVY_TOKENS}. */
  readonly maxTokens: number;
}

/** Why a JSON text is refused. */
export type JsonFault = 'invalid' | 'too_deep' | 'too_many_tokens';

/** The fault of the bytes `[start, end)`, which must hold one JSON value; null if there is none. */
export type JsonCheck = (bytes: Buffer, start?: number, end?: number) => JsonFault | null;

/** For text that is not parsed as a whole. */
export const NO_JSON_LIMITS: JsonLimits = { maxDepth: Infinity, maxTokens: Infinity };

/** Parsing an object, array, member or string costs about as much as parsing this many numbers. */
export const HEAVY_TOKENS = 32;

const COLON = 0x3a;
/** Levels of nesting whose memory is kept between two calls. */
const KEPT_LEVELS = 1024;

/**
 * Checks JSON without building objects.
 *
 * `JSON.parse` takes up to 90 bytes of memory per byte of text, cannot be interrupted, and blocks every
 * other request meanwhile: one line of 16 MiB can exhaust the heap of a worker. A limit of bytes does not
 * help, because a legitimate line of the same size (one long string) costs almost nothing. The cost grows
 * with the number of values, so this check counts them first, in one pass over the bytes with one byte of
 * memory per level of nesting. Text from outside passes this check before it is parsed. Within the limits
 * it accepts exactly what `JSON.parse` accepts, given valid UTF-8.
 */
export function createJsonCheck({ maxDepth, maxTokens }: JsonLimits): JsonCheck {
  /** The closing byte of every open object and array. */
  let closers = new Uint8Array(KEPT_LEVELS);
  let depth = 0;
  let tokens = 0;

  const text = (bytes: Buffer, at: number, end: number): number => {
    tokens += HEAVY_TOKENS;
    return tokens > maxTokens ? NONE : textEnd(bytes, at, end);
  };

  /** Steps over a key and its colon to the value. */
  const member = (bytes: Buffer, at: number, end: number): number => {
    const keyEnd = textEnd(bytes, at, end);
    if (keyEnd === NONE) return NONE;
    const colon = blanksEnd(bytes, keyEnd, end);
    if (colon >= end || bytes[colon] !== COLON) return NONE;
    tokens += HEAVY_TOKENS;
    return tokens > maxTokens ? NONE : blanksEnd(bytes, colon + 1, end);
  };

  /** From the end of a value to the next value; to `end` after the last one. */
  const leave = (bytes: Buffer, from: number, end: number): number => {
    let at = blanksEnd(bytes, from, end);
    while (depth > 0 && at < end && bytes[at] === closers[depth - 1]) {
      depth--;
      at = blanksEnd(bytes, at + 1, end);
    }
    if (depth === 0) return at === end ? end : NONE;
    if (at >= end || bytes[at] !== COMMA || ++tokens > maxTokens) return NONE;
    at = blanksEnd(bytes, at + 1, end);
    return closers[depth - 1] === CLOSE_BRACE ? member(bytes, at, end) : at;
  };

  /** Steps into an object or array to its first value, or over it if it is empty. */
  const enter = (bytes: Buffer, open: number, end: number): number => {
    const closer = bytes[open] === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
    if (depth === closers.length) closers = grown(closers);
    closers[depth++] = closer;
    tokens += HEAVY_TOKENS;
    if (depth > maxDepth || tokens > maxTokens) return NONE;
    const at = blanksEnd(bytes, open + 1, end);
    if (at < end && bytes[at] === closer) return leave(bytes, at, end);
    return closer === CLOSE_BRACE ? member(bytes, at, end) : at;
  };

  const isWhole = (bytes: Buffer, start: number, end: number): boolean => {
    let at = blanksEnd(bytes, start, end);
    do {
      const byte = at < end ? bytes[at] : NONE;
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        at = enter(bytes, at, end);
      } else {
        at = byte === QUOTE ? text(bytes, at, end) : scalarEnd(bytes, at, end);
        if (at !== NONE) at = leave(bytes, at, end);
      }
    } while (at !== NONE && (at < end || depth > 0));
    return at === end;
  };

  return (bytes, start = 0, end = bytes.length) => {
    depth = 0;
    tokens = 0;
    const whole = isWhole(bytes, start, end);
    if (closers.length > KEPT_LEVELS) closers = new Uint8Array(KEPT_LEVELS);
    if (depth > maxDepth) return 'too_deep';
    if (tokens > maxTokens) return 'too_many_tokens';
    return whole ? null : 'invalid';
  };
}

/**
 * The check for text that is parsed right afterwards. Most lines are so short and flat that they cannot
 * exceed the limits. It returns null for those without checking them, and the parser finds their faults.
 */
export function createJsonGuard(limits: JsonLimits): JsonCheck {
  const check = createJsonCheck(limits);
  return (bytes, start = 0, end = bytes.length) => {
    const isShort = (end - start) * HEAVY_TOKENS <= limits.maxTokens;
    if (isShort && isFlat(bytes.subarray(start, end), limits.maxDepth)) return null;
    return check(bytes, start, end);
  };
}

/** Whether there are at most `maxDepth` opening brackets, including those in strings; 0.1 ns per byte. */
function isFlat(text: Buffer, maxDepth: number): boolean {
  if (text.length <= maxDepth) return true;
  let left = maxDepth;
  for (const opener of [OPEN_BRACE, OPEN_BRACKET]) {
    let at = text.indexOf(opener);
    while (at !== -1) {
      if (left-- === 0) return false;
      at = text.indexOf(opener, at + 1);
    }
  }
  return true;
}

function grown(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 * bytes.length);
  larger.set(bytes);
  return larger;
}
