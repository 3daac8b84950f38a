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

const SPACE: u32 = 0x20;
const BACKSLASH: u32 = 0x5c;
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
  let at = from;
  let end = GO_ON;
  for (; end === GO_ON && at < far; at += BLOCK) end = endInBlock(at);
  if (end !== GO_ON) return end;
  const known = knownEnd(from);
  if (known !== 0) {
    // Perhaps it has none: then a name of this length makes its line an unusual one, and costs time only.
    hasEscape = true;
    return known;
  }
  for (; end === GO_ON; at += BLOCK) end = endInBlock(at);
  if (end !== FAIL) rememberText(from, end);
  return end;
}

/** Position after the string if it ends in the 64 bytes at `at`, {@link GO_ON} if it does not, FAIL if it has a fault. */
function endInBlock(at: usize): usize {
  const a = v128.load(at);
  const b = v128.load(at, 16);
  const c = v128.load(at, 32);
  const d = v128.load(at, 48);
  const special = v128.or(v128.or(specials(a), specials(b)), v128.or(specials(c), specials(d)));
  if (!v128.any_true(special) && isOddEnd === 0) return GO_ON;
  const slashes = mask(slashesOf(a), slashesOf(b), slashesOf(c), slashesOf(d));
  const escaped = escapedBy(slashes);
  const stops = mask(stopsOf(a), stopsOf(b), stopsOf(c), stopsOf(d)) & ~escaped;
  const inside = stops === 0 ? ALL : (stops & (0 - stops)) - 1;
  if ((slashes & inside) !== 0) hasEscape = true;
  const wrong = mask(wrongOf(a), wrongOf(b), wrongOf(c), wrongOf(d));
  if ((escaped & inside & wrong) !== 0) return FAIL;
  const unicode = mask(unicodeOf(a), unicodeOf(b), unicodeOf(c), unicodeOf(d)) & escaped & inside;
  if (unicode !== 0 && !areHex(at, unicode)) return FAIL;
  if (stops === 0) return GO_ON;
  const stop = at + <usize>ctz(stops);
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

/** Whether four hexadecimal digits follow each of the bytes. */
function areHex(block: usize, bytes: u64): bool {
  for (let left = bytes; left !== 0; left &= left - 1) {
    const from = block + <usize>ctz(left) + 1;
    for (let at = from; at < from + 4; at++) {
      const byte = byteAt(at);
      if (byte - DIGIT_ZERO > 9 && (byte | LOWER) - 0x61 > 5) return false;
    }
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
    i8x16.lt_u(block, i8x16.splat(<i8>SPACE)),
  );
}

function unicodeOf(block: v128): v128 {
  return i8x16.eq(block, i8x16.splat(<i8>LETTER_U));
}

/**
 * The bytes that no backslash may be before. Both tables have a bit for each upper half of `"/` (2), `\\` (5), `bfn` (6)
 * and `rtu` (7): by the lower half of a byte, and by its upper half.
 */
function wrongOf(block: v128): v128 {
  const lower = i8x16.swizzle(
    i8x16(0, 0, 13, 0, 8, 8, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1),
    v128.and(block, i8x16.splat(15)),
  );
  const upper = i8x16.swizzle(
    i8x16(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0),
    i8x16.shr_u(block, 4),
  );
  return i8x16.eq(v128.and(lower, upper), i8x16.splat(0));
}
