/**
 * Steps over strings of JSON, 64 bytes at a time, without a branch for each escape: masks have a bit for each byte
 * (Langdale and Lemire, "Parsing gigabytes of JSON per second", 2019). A line feed follows the text.
 */
import { knownEnd, MIN_COMPARED, rememberText } from './known-texts';

/**
 * What is returned if no string, or no other value, begins at a position. Bytes there are zero, so every function that is
 * given FAIL returns it too.
 */
export const FAIL: usize = 0;

/** Begins and ends strings. */
export const QUOTE: u32 = 0x22;
/** The first of the ten digits. */
export const DIGIT_ZERO: u32 = 0x30;
/** Turns an ASCII letter into its lower case. */
export const LOWER: u32 = 0x20;

const LAST_CONTROL: u32 = 0x1f;
const BACKSLASH: u32 = 0x5c;
const LETTER_B: u32 = 0x62;
const LETTER_R: u32 = 0x72;
const LETTER_U: u32 = 0x75;
const BLOCK: usize = 64;
/** No end and no fault yet. */
const GO_ON: usize = 1;
const ALL: u64 = 0xffffffffffffffff;
const EVEN_BITS: u64 = 0x5555555555555555;

/** Whether the latest string, or key, has a backslash. */
export let hasEscape: bool = false;

/** Whether the first byte of the next block follows a backslash that escapes it: 0 or 1. */
let isOddEnd: u64 = 0;

/** One byte of the text. */
export function byteAt(at: usize): u32 {
  return load<u8>(at);
}

/** Steps over the string that begins at `open`. */
export function textEnd(open: usize): usize {
  if (byteAt(open) !== QUOTE) return FAIL;
  const from = open + 1;
  const found = i8x16.bitmask(specials(v128.load(from)));
  if (found === 0) return longTextEnd(from);
  const at = from + <usize>ctz(found);
  if (byteAt(at) !== QUOTE) return longTextEnd(from);
  hasEscape = false;
  return at + 1;
}

/** Steps over a string from its first character. A long one is compared with earlier texts first. */
function longTextEnd(from: usize): usize {
  hasEscape = false;
  isOddEnd = 0;
  const far = from + MIN_COMPARED;
  const end = endBefore(from, far);
  if (end !== GO_ON) return end;
  const known = knownEnd(from);
  if (known !== 0) {
    // Perhaps it has none: then a name of this length makes its line an unusual one, and costs time only.
    hasEscape = true;
    return known;
  }
  const farEnd = endBefore(far, usize.MAX_VALUE);
  if (farEnd !== FAIL) rememberText(from, farEnd);
  return farEnd;
}

/**
 * Position after the string if it ends in one of the blocks that begin before `far`, FAIL if it has a fault before, else
 * {@link GO_ON}. One loop, which a compiler turns into one with all constants in registers.
 */
function endBefore(from: usize, far: usize): usize {
  for (let at = from; at < far; at += BLOCK) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);
    const special = v128.or(v128.or(specials(a), specials(b)), v128.or(specials(c), specials(d)));
    if (!v128.any_true(special) && isOddEnd === 0) continue;
    const slashes = mask(slashesOf(a), slashesOf(b), slashesOf(c), slashesOf(d));
    let stops = mask(stopsOf(a), stopsOf(b), stopsOf(c), stopsOf(d));
    if ((slashes | isOddEnd) !== 0) {
      const escaped = escapedBy(slashes);
      stops &= ~escaped;
      const inside = stops === 0 ? ALL : (stops & (0 - stops)) - 1;
      if ((slashes & inside) !== 0) hasEscape = true;
      const usual = mask(usualOf(a), usualOf(b), usualOf(c), usualOf(d));
      const unusual = escaped & inside & ~usual;
      if (unusual !== 0 && !areEscapes(at, unusual)) return FAIL;
    }
    if (stops !== 0) return stopIn(at, stops);
  }
  return GO_ON;
}

/** The end of the string if the first of the stops is a quote. */
function stopIn(block: usize, stops: u64): usize {
  const stop = block + <usize>ctz(stops);
  return byteAt(stop) === QUOTE ? stop + 1 : FAIL;
}

/**
 * The bytes that a backslash escapes. In a row of backslashes every second one escapes the byte after it; whether it is
 * at an odd place follows from the carry of an addition.
 */
function escapedBy(slashes: u64): u64 {
  if ((slashes | isOddEnd) === 0) return 0;
  const escaping = slashes & ~isOddEnd;
  const behind = (escaping << 1) | isOddEnd;
  const oddStarts = escaping & ~EVEN_BITS & ~behind;
  const fromEven = oddStarts + escaping;
  isOddEnd = fromEven < oddStarts ? 1 : 0;
  return (EVEN_BITS ^ (fromEven << 1)) & behind;
}

/** Whether a backslash may be before each of the bytes. */
function areEscapes(block: usize, bytes: u64): bool {
  for (let left = bytes; left !== 0; left &= left - 1) {
    const at = block + <usize>ctz(left);
    const byte = byteAt(at);
    if (byte === LETTER_U ? !areHex(at + 1) : byte !== LETTER_R && byte !== LETTER_B) return false;
  }
  return true;
}

/** Whether there are four hexadecimal digits. */
function areHex(from: usize): bool {
  for (let at = from; at < from + 4; at++) {
    const byte = byteAt(at);
    if (byte - DIGIT_ZERO > 9 && (byte | LOWER) - 0x61 > 5) return false;
  }
  return true;
}

/** One bit for each of 64 bytes. */
function mask(a: v128, b: v128, c: v128, d: v128): u64 {
  const low = i8x16.bitmask(a) | (i8x16.bitmask(b) << 16);
  const high = i8x16.bitmask(c) | (i8x16.bitmask(d) << 16);
  return (<u64>(<u32>low)) | ((<u64>(<u32>high)) << 32);
}

/** Quotes, backslashes and control characters. */
function specials(block: v128): v128 {
  return v128.or(slashesOf(block), stopsOf(block));
}

function slashesOf(block: v128): v128 {
  return i8x16.eq(block, i8x16.splat(<i8>BACKSLASH));
}

function stopsOf(block: v128): v128 {
  return v128.or(
    i8x16.eq(block, i8x16.splat(<i8>QUOTE)),
    i8x16.le_u(block, i8x16.splat(<i8>LAST_CONTROL)),
  );
}

/** Bytes that may follow a backslash, except `b`, `r` and `u`: each is the one with its lower half in the table. */
function usualOf(block: v128): v128 {
  const usual = i8x16.swizzle(
    i8x16(1, 0, 0x22, 0, 0x74, 0, 0x66, 0, 0, 0, 0, 0, 0x5c, 0, 0x6e, 0x2f),
    v128.and(block, i8x16.splat(15)),
  );
  return i8x16.eq(block, usual);
}
