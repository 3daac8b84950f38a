/**
 * Long strings that were read before in the same call, so that equal ones are compared instead of read. Requests of one
 * batch often share a system prompt or a document.
 */

/** Each entry: where its text begins after the quote, and where it ends, as addresses. */
const TABLE: usize = 24576;
/** Texts of more bytes are compared, with their closing quotes. */
export const MIN_COMPARED: usize = 256;
const ENTRY_BYTES: usize = 8;
const ENTRIES: u32 = 512;
const PRIME: u64 = 0x9e3779b97f4a7c15;

/** Where the earliest text that is known to equal the latest long one begins. */
export let firstEqual: usize = 0;

/** The entry of the latest long text. */
let entry: usize = TABLE;

/** Forgets all texts. */
export function forgetTexts(): void {
  memory.fill(TABLE, 0, <usize>ENTRIES * ENTRY_BYTES);
}

/** The end of the text that begins at `from`, if it equals an earlier one; else 0. Texts have at least 64 bytes. */
export function knownEnd(from: usize): usize {
  firstEqual = from;
  entry = TABLE + <usize>(digestOf(from) & (ENTRIES - 1)) * ENTRY_BYTES;
  const known = load<u32>(entry);
  if (known === 0) return 0;
  const length = load<u32>(entry, 4) - known;
  if (!areEqual(known, from, length)) return 0;
  firstEqual = known;
  return from + length;
}

/** Adds the text that {@link knownEnd} was called for. */
export function rememberText(from: usize, end: usize): void {
  store<u32>(entry, <u32>from);
  store<u32>(entry, <u32>end, 4);
}

/**
 * Whether two texts have the same `length` bytes, of which there are at least 64. It reads no further than 64 bytes behind
 * the first difference.
 */
function areEqual(a: usize, b: usize, length: usize): bool {
  const last = length - 64;
  for (let at: usize = 0; at < last; at += 64) if (differ(a + at, b + at)) return false;
  return !differ(a + last, b + last);
}

function differ(a: usize, b: usize): bool {
  const low = v128.or(
    v128.xor(v128.load(a), v128.load(b)),
    v128.xor(v128.load(a, 16), v128.load(b, 16)),
  );
  const high = v128.or(
    v128.xor(v128.load(a, 32), v128.load(b, 32)),
    v128.xor(v128.load(a, 48), v128.load(b, 48)),
  );
  return v128.any_true(v128.or(low, high));
}

/** Of the first 64 bytes. */
function digestOf(from: usize): u32 {
  const low = v128.add<i64>(
    v128.load(from),
    v128.mul<i64>(v128.load(from, 16), i64x2.splat(PRIME)),
  );
  const high = v128.add<i64>(
    v128.load(from, 32),
    v128.mul<i64>(v128.load(from, 48), i64x2.splat(PRIME)),
  );
  const mix = v128.add<i64>(low, v128.mul<i64>(high, i64x2.splat(PRIME - 2)));
  const word = <u64>i64x2.extract_lane(mix, 0) * PRIME + <u64>i64x2.extract_lane(mix, 1);
  return <u32>((word * PRIME) >> 48);
}
