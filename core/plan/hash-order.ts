/** Bits of a hash that one pass sorts by. */
const DIGIT_BITS = 11;
const DIGITS = 1 << DIGIT_BITS;
const HASH_BITS = 32;

/**
 * Entry numbers by ascending hash; null if the entries are in this order already. Entries with equal hashes keep their order.
 *
 * A radix sort, because its time does not depend on the hashes, and its loops over typed arrays are fast after the first few
 * thousand entries, although a file is sorted only once. Each loop is a function: a compiler that has not seen what comes
 * behind a loop throws its code away at the end of it.
 */
export function orderByHash(hashes: Uint32Array): Uint32Array | null {
  if (isAscending(hashes)) return null;
  let order = inputOrder(hashes.length);
  let sorted = new Uint32Array(hashes.length);
  for (let shift = 0; shift < HASH_BITS; shift += DIGIT_BITS) {
    sortByDigit(hashes, shift, { from: order, to: sorted });
    [order, sorted] = [sorted, order];
  }
  return order;
}

/** The numbers of `count` entries. */
export function inputOrder(count: number): Uint32Array<ArrayBuffer> {
  const order = new Uint32Array(count);
  for (let entry = 0; entry < count; entry++) order[entry] = entry;
  return order;
}

function sortByDigit(
  hashes: Uint32Array,
  shift: number,
  { from, to }: { readonly from: Uint32Array; readonly to: Uint32Array },
): void {
  const places = placesOfDigits(hashes, shift);
  for (let i = 0; i < from.length; i++) {
    const entry = from[i] ?? 0;
    const digit = ((hashes[entry] ?? 0) >>> shift) & (DIGITS - 1);
    const place = places[digit] ?? 0;
    places[digit] = place + 1;
    to[place] = entry;
  }
}

/** The place of the first entry with each digit. */
function placesOfDigits(hashes: Uint32Array, shift: number): Uint32Array {
  const places = countsOfDigits(hashes, shift);
  let place = 0;
  for (let digit = 0; digit < DIGITS; digit++) {
    const count = places[digit] ?? 0;
    places[digit] = place;
    place += count;
  }
  return places;
}

function countsOfDigits(hashes: Uint32Array, shift: number): Uint32Array {
  const counts = new Uint32Array(DIGITS);
  for (let entry = 0; entry < hashes.length; entry++) {
    const digit = ((hashes[entry] ?? 0) >>> shift) & (DIGITS - 1);
    counts[digit] = (counts[digit] ?? 0) + 1;
  }
  return counts;
}

/** Without an iterator, which makes an object for each entry until the loop is compiled. */
function isAscending(hashes: Uint32Array): boolean {
  let previous = 0;
  for (let entry = 0; entry < hashes.length; entry++) {
    const hash = hashes[entry] ?? 0;
    if (hash < previous) return false;
    previous = hash;
  }
  return true;
}
