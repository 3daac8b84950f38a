const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/**
 * The order in which a model's lines are sent: by prefix hash, so that requests with the same system
 * prompt run back to back and hit the model server's prefix cache; in input order if the hashes are equal
 * (docs/design/batch-path.md#order-of-sending). Returns a function from place in this order to entry
 * number, or null if the input is in this order already.
 */
export function dispatchOrder(
  count: number,
  hashOf: (index: number) => number,
): ((place: number) => number) | null {
  if (isOrdered(count, hashOf)) return null;
  // Hash and entry number form one 64-bit key, with the hash in the upper half. The native sort then
  // needs no comparator, and equal hashes keep their order.
  const keys = new BigUint64Array(count);
  const halves = new Uint32Array(keys.buffer);
  const low = LITTLE_ENDIAN ? 0 : 1;
  for (let i = 0; i < count; i++) {
    halves[2 * i + low] = i;
    halves[2 * i + 1 - low] = hashOf(i);
  }
  keys.sort();
  return (place) => halves[2 * place + low] ?? 0;
}

function isOrdered(count: number, hashOf: (index: number) => number): boolean {
  let previous = 0;
  for (let i = 0; i < count; i++) {
    const hash = hashOf(i);
    if (hash < previous) return false;
    previous = hash;
  }
  return true;
}
