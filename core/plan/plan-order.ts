const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/**
 * The order in which a model's lines are sent (execution §1): by prefix hash, so that requests which
 * share a prefix run back to back; input order inside equal hashes. Gives the entry's number at each
 * place, or null where input order is that order. `hashOf` is asked for entries 0 to `count` - 1.
 */
export function dispatchOrder(
  count: number,
  hashOf: (index: number) => number,
): ((place: number) => number) | null {
  if (isOrdered(count, hashOf)) return null;
  // Hash and number are one 64-bit key, the hash in its upper half: the engine's native sort needs no
  // comparator, and equal hashes keep their order.
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
