/**
 * Recognizes lines that are written like the line before: the same bytes, except within some strings. Nearly all lines of a
 * file are. The line before was found to be good, and a string in its place changes neither the members, nor the nesting, nor
 * the count of tokens. So only the strings are read, and everything else is compared
 * (docs/design/batch-path.md#index-of-a-line).
 */
import { FAIL, hasEscape, textEnd } from './json-strings';
import { firstEqual } from './known-texts';

/**
 * Each string of the line before: where it begins and ends, as addresses; by how much its beginning moves in the next line;
 * where the earliest text begins that is known to equal it, if it is a long one; and whether it must not have an escape. One
 * more entry says how far the end of the line moves.
 */
const STRINGS: usize = 22528;
const STRING_BYTES: usize = 20;
const END: usize = 4;
const SHIFT: usize = 8;
const EQUAL: usize = 12;
const IS_PLAIN: usize = 16;
/** Lines with more strings are never compared. */
const MAX_STRINGS: u32 = 64;
/** Lines that are not compared after a difference, at most. */
const MAX_PAUSE: u32 = 63;

/** Strings of the line that is read, or was. */
export let stringCount: u32 = 0;

/** The line before; 0 if lines cannot be compared with it. */
let before: usize = 0;
/** Its line feed. */
let beforeEnd: usize = 0;
/** How many lines are not compared after the next difference, and how many are left of them. */
let pause: u32 = 0;
let paused: u32 = 0;

/** Begins with other lines. */
export function forgetShape(): void {
  before = 0;
  pause = 0;
  paused = 0;
}

/** Begins a line whose strings are noted. */
export function beginShape(): void {
  before = 0;
  stringCount = 0;
}

/** Notes a string that may be another one in the next line. */
export function noteString(start: usize, end: usize): void {
  if (stringCount < MAX_STRINGS) {
    const string = entry(stringCount);
    store<u32>(string, <u32>start);
    store<u32>(string, <u32>end, END);
    store<u32>(string, 0, IS_PLAIN);
  }
  stringCount++;
}

/** The latest string that was noted must not have an escape. */
export function notePlain(): void {
  if (stringCount <= MAX_STRINGS) store<u32>(entry(stringCount - 1), 1, IS_PLAIN);
}

/** The line whose strings were noted is a good one. The next one is compared with it. */
export function keepShape(start: usize, newline: usize): void {
  if (stringCount > MAX_STRINGS) return;
  before = start;
  beforeEnd = newline;
}

/**
 * The line feed of the line at `start` if it is written like the line before, which it replaces; else FAIL. If it fails, the
 * line must be noted before others can be compared.
 */
export function sameShapeEnd(start: usize): usize {
  if (before === 0) return FAIL;
  if (paused > 0) {
    paused--;
    return FAIL;
  }
  const newline = comparedEnd(start);
  if (newline === FAIL) {
    // A line with a difference is read twice, so lines of different shapes are compared seldom.
    paused = pause;
    pause = min(2 * pause + 1, MAX_PAUSE);
    return FAIL;
  }
  pause = 0;
  before = start;
  beforeEnd = newline;
  return newline;
}

/** By how many bytes what follows the first `strings` of them has moved. */
export function shiftAfter(strings: u32): u32 {
  return load<u32>(entry(strings), SHIFT);
}

/** See core/assembly/known-texts.ts. */
export function equalString(string: u32): u32 {
  return load<u32>(entry(string), EQUAL);
}

function comparedEnd(start: usize): usize {
  let from = before;
  let at = start;
  for (let i: u32 = 0; i < stringCount; i++) {
    const string = entry(i);
    const open = load<u32>(string);
    if (!areAlike(from, at, open - from)) return FAIL;
    at += open - from;
    from = load<u32>(string, END);
    store<u32>(string, <u32>at);
    store<u32>(string, <u32>(at - open), SHIFT);
    at = textEnd(at);
    if (at === FAIL || (hasEscape && load<u32>(string, IS_PLAIN) !== 0)) return FAIL;
    store<u32>(string, <u32>at, END);
    store<u32>(string, <u32>firstEqual, EQUAL);
  }
  store<u32>(entry(stringCount), <u32>(at - from), SHIFT);
  const rest = beforeEnd + 1 - from;
  return areAlike(from, at, rest) ? at + rest - 1 : FAIL;
}

/**
 * Whether two texts have the same bytes. Reads up to 16 bytes behind the first difference, and there is one at the latest
 * where a line ends that is shorter than the line before.
 */
function areAlike(a: usize, b: usize, length: usize): bool {
  let at: usize = 0;
  for (; at + 16 <= length; at += 16) {
    if (v128.any_true(v128.xor(v128.load(a + at), v128.load(b + at)))) return false;
  }
  const rest = <i32>(length - at);
  const equal = i8x16.bitmask(i8x16.eq(v128.load(a + at), v128.load(b + at)));
  return (~equal & ((1 << rest) - 1)) === 0;
}

function entry(string: u32): usize {
  return STRINGS + <usize>string * STRING_BYTES;
}
