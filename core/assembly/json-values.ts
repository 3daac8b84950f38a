/**
 * Steps over the values of one JSON text, as core/openai/json-check.ts does. The text is one line, followed by its line
 * feed, which no token of a line contains, so nothing here looks for its end. Positions are addresses.
 */
import { byteAt, DIGIT_ZERO, FAIL, QUOTE, LOWER, textEnd } from './json-strings';
import { noteString } from './line-shape';

/** Bytes that begin and end values. */
export const OPEN_BRACE: u32 = 0x7b;
export const CLOSE_BRACE: u32 = 0x7d;
export const OPEN_BRACKET: u32 = 0x5b;
export const CLOSE_BRACKET: u32 = 0x5d;

const SPACE: u32 = 0x20;
const TAB: u32 = 0x09;
const CR: u32 = 0x0d;
const COMMA: u32 = 0x2c;
const COLON: u32 = 0x3a;
const MINUS: u32 = 0x2d;
const PLUS: u32 = 0x2b;
const POINT: u32 = 0x2e;
const ONE: u32 = 0x31;
const LETTER_E: u32 = 0x65;
const TRUE: u32 = 0x65757274;
const NULL: u32 = 0x6c6c756e;
const FALS: u32 = 0x736c6166;
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

/** Where the opening quote of the latest key is, and the position after its closing quote. */
export let keyStart: usize = 0;
export let keyEnd: usize = 0;

/** Begins a text. A limit above 2^31 could overflow the counter of tokens. */
export function beginText(maxDepth: u32, maxTokens: u32): void {
  depth = 0;
  tokens = 0;
  depthLimit = min(maxDepth, MAX_DEPTH);
  tokenLimit = maxTokens;
}

/** Position of the first byte at or after `from` that is not white space. The line feed ends the text. */
export function blanksEnd(from: usize): usize {
  return byteAt(from) > SPACE ? from : farBlanksEnd(from);
}

function farBlanksEnd(from: usize): usize {
  let at = from;
  let byte = byteAt(at);
  while (byte === SPACE || byte === CR || byte === TAB) byte = byteAt(++at);
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
  keyEnd = textEnd(at);
  const colon = blanksEnd(keyEnd);
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

/** Steps over a string that is a value, and may be another one in the next line. */
export function stringEnd(at: usize): usize {
  const end = fixedStringEnd(at);
  noteString(at, end);
  return end;
}

/** Steps over a string that is a value. */
export function fixedStringEnd(at: usize): usize {
  tokens += HEAVY;
  return tokens <= tokenLimit ? textEnd(at) : FAIL;
}

function scalarEnd(at: usize): usize {
  const byte = byteAt(at);
  if (byte === MINUS || byte - DIGIT_ZERO <= 9) return numberEnd(at);
  const word = load<u32>(at);
  if (word === TRUE || word === NULL) return at + 4;
  return word === FALS && byteAt(at + 4) === LETTER_E ? at + 5 : FAIL;
}

function numberEnd(start: usize): usize {
  let at = byteAt(start) === MINUS ? start + 1 : start;
  if (byteAt(at) === DIGIT_ZERO) at++;
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
  while (byteAt(at) - DIGIT_ZERO <= 9) at++;
  return at === start ? FAIL : at;
}
