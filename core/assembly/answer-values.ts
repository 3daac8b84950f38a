/**
 * Steps over the values of one JSON text, as core/openai/json-check.ts does, 16 bytes at a time within strings. The text is
 * followed by a zero byte, which no token contains, so nothing here looks for its end. Positions are addresses.
 * {@link FAIL} is returned when no value, or none within the limits, begins at a position. Bytes there are zero, so every
 * function that is given FAIL returns it too.
 *
 * Answers differ from lines (json-values.ts): they may have line feeds, and no answer repeats the long texts of another one,
 * so a table of known texts would only cost time and memory.
 */
export const FAIL: usize = 0;

/** Bytes that begin and end values. */
export const QUOTE: u32 = 0x22;
export const OPEN_BRACE: u32 = 0x7b;
export const CLOSE_BRACE: u32 = 0x7d;
const OPEN_BRACKET: u32 = 0x5b;
/** Begins an escape. */
export const BACKSLASH: u32 = 0x5c;

const SPACE: u32 = 0x20;
const TAB: u32 = 0x09;
const LF: u32 = 0x0a;
const CR: u32 = 0x0d;
const COMMA: u32 = 0x2c;
const COLON: u32 = 0x3a;
const MINUS: u32 = 0x2d;
const PLUS: u32 = 0x2b;
const POINT: u32 = 0x2e;
const ZERO: u32 = 0x30;
const ONE: u32 = 0x31;
const LETTER_E: u32 = 0x65;
const LETTER_U: u32 = 0x75;
/** Turns an ASCII letter into its lower case. */
const LOWER: u32 = 0x20;
const TRUE: u32 = 0x65757274;
const NULL: u32 = 0x6c6c756e;
const FALS: u32 = 0x736c6166;
/** Bit `n - 0x5c` is set if a backslash may be before the byte `n`: one of `\bfnrt`. */
const ESCAPED: u32 = 0x01440441;
/** The difference between both brackets and braces. */
const TO_CLOSER: u32 = 2;

/** An object, array, member or string counts as much as this many commas. */
const HEAVY: u32 = 32;
/** The closing byte of each level of nesting, by its depth. */
const CLOSERS: usize = 4096;
/** As many levels as {@link CLOSERS} has bytes. */
const MAX_DEPTH: u32 = 16383;

let depth: u32 = 0;
let depthLimit: u32 = 0;
let tokens: u32 = 0;
let tokenLimit: u32 = 0;

/** Whether the latest string, or key, has a backslash. */
export let hasEscape: bool = false;
/** Where the opening quote of the latest key is. */
export let keyStart: usize = 0;
/** Whether there was white space outside strings in the text so far. */
export let hasBlanks: bool = false;

/** Begins a text. A limit above 2^31 could overflow the counter of tokens. */
export function beginText(maxDepth: u32, maxTokens: u32): void {
  depth = 0;
  tokens = 0;
  hasBlanks = false;
  depthLimit = min(maxDepth, MAX_DEPTH);
  tokenLimit = maxTokens;
}

/** One byte of the text. */
export function byteAt(at: usize): u32 {
  return load<u8>(at);
}

/** Position of the first byte at or after `from` that is not white space. */
export function blanksEnd(from: usize): usize {
  let at = from;
  let byte = byteAt(at);
  while (byte === SPACE || byte === LF || byte === CR || byte === TAB) byte = byteAt(++at);
  if (at !== from) hasBlanks = true;
  return at;
}

/** Counts an object or array, and the level that begins with it; false beyond a limit. */
export function enter(): bool {
  tokens += HEAVY;
  return ++depth <= depthLimit && tokens <= tokenLimit;
}

/** Ends the level whose closing byte is at `closer`. */
export function leave(closer: usize): usize {
  depth--;
  return closer + 1;
}

/** Position of the next value or key, given that of the comma before it. */
export function commaEnd(at: usize): usize {
  return byteAt(at) === COMMA && ++tokens <= tokenLimit ? blanksEnd(at + 1) : FAIL;
}

/** Steps over a key and its colon to the value. */
export function member(at: usize): usize {
  keyStart = at;
  const colon = blanksEnd(textEnd(at));
  tokens += HEAVY;
  return byteAt(colon) === COLON && tokens <= tokenLimit ? blanksEnd(colon + 1) : FAIL;
}

/** Steps over any value. */
export function valueEnd(from: usize): usize {
  const floor = depth;
  let at = from;
  while (at !== FAIL) {
    const byte = byteAt(at);
    let isOpened = false;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (!enter()) return FAIL;
      const closer = byte + TO_CLOSER;
      store<u8>(CLOSERS + depth, <u8>closer);
      at = blanksEnd(at + 1);
      isOpened = byteAt(at) !== closer;
    } else {
      at = byte === QUOTE ? stringEnd(at) : scalarEnd(at);
    }
    if (!isOpened) {
      at = levelsEnd(at, floor);
      if (depth === floor) return at;
      at = commaEnd(at);
    }
    if (load<u8>(CLOSERS + depth) === CLOSE_BRACE) at = member(at);
  }
  return FAIL;
}

/** Steps over the closing bytes behind a value, down to the level `floor` at most. */
function levelsEnd(from: usize, floor: u32): usize {
  let at = from;
  while (depth > floor) {
    at = blanksEnd(at);
    if (byteAt(at) !== load<u8>(CLOSERS + depth)) break;
    at = leave(at);
  }
  return at;
}

/** Steps over a string that is a value. */
export function stringEnd(at: usize): usize {
  tokens += HEAVY;
  return tokens <= tokenLimit ? textEnd(at) : FAIL;
}

function textEnd(open: usize): usize {
  if (byteAt(open) !== QUOTE) return FAIL;
  hasEscape = false;
  let at = plainEnd(open + 1);
  while (byteAt(at) === BACKSLASH) {
    hasEscape = true;
    at = escapeEnd(at + 1);
    if (at === FAIL) return FAIL;
    at = plainEnd(at);
  }
  return byteAt(at) === QUOTE ? at + 1 : FAIL;
}

/** Position of the first quote, backslash or control character. */
function plainEnd(from: usize): usize {
  const quotes = i8x16.splat(<i8>QUOTE);
  const slashes = i8x16.splat(<i8>BACKSLASH);
  const spaces = i8x16.splat(<i8>SPACE);
  let at = from;
  while (true) {
    const block = v128.load(at);
    const ends = v128.or(i8x16.eq(block, quotes), i8x16.eq(block, slashes));
    const found = i8x16.bitmask(v128.or(ends, i8x16.lt_u(block, spaces)));
    if (found !== 0) return at + <usize>ctz(found);
    at += 16;
  }
  return FAIL;
}

function escapeEnd(at: usize): usize {
  const byte = byteAt(at);
  if (byte === LETTER_U) return hexEnd(at + 1);
  if (byte === QUOTE || byte === 0x2f) return at + 1;
  const bit = byte - BACKSLASH;
  return bit < 32 && ((ESCAPED >> bit) & 1) !== 0 ? at + 1 : FAIL;
}

function hexEnd(from: usize): usize {
  for (let at = from; at < from + 4; at++) {
    const byte = byteAt(at);
    if (byte - ZERO > 9 && (byte | LOWER) - 0x61 > 5) return FAIL;
  }
  return from + 4;
}

function scalarEnd(at: usize): usize {
  const byte = byteAt(at);
  if (byte === MINUS || byte - ZERO <= 9) return numberEnd(at);
  const word = load<u32>(at);
  if (word === TRUE || word === NULL) return at + 4;
  return word === FALS && byteAt(at + 4) === LETTER_E ? at + 5 : FAIL;
}

function numberEnd(start: usize): usize {
  let at = byteAt(start) === MINUS ? start + 1 : start;
  if (byteAt(at) === ZERO) at++;
  else at = byteAt(at) - ONE <= 8 ? digitsEnd(at) : FAIL;
  if (at !== FAIL && byteAt(at) === POINT) at = digitsEnd(at + 1);
  if (at === FAIL || (byteAt(at) | LOWER) !== LETTER_E) return at;
  at++;
  if (byteAt(at) === PLUS || byteAt(at) === MINUS) at++;
  return digitsEnd(at);
}

/** At least one digit. */
function digitsEnd(start: usize): usize {
  let at = start;
  while (byteAt(at) - ZERO <= 9) at++;
  return at === start ? FAIL : at;
}
