/** The hash of a `custom_id`, as core/openai/id-hash.ts computes it: three words that depend on a random seed. */

/** Stores the hash of the bytes `[start, end)` at `target`. It reads up to three bytes behind them. */
export function storeIdHash(target: usize, start: usize, end: usize, seed: u32): void {
  let a = seed;
  let b = (seed ^ 0x5bd1e995) * 0x7feb352d;
  let c = (seed ^ 0x2545f491) * 0x846ca68b;
  let at = start;
  while (at < end) {
    const left = end - at;
    const word = left < 4 ? load<u32>(at) & ((1 << (<u32>left * 8)) - 1) : load<u32>(at);
    a = (rotl<u32>(a, 13) ^ word) * 0x2c1b3c6d;
    b = (rotl<u32>(b, 15) ^ word) * 0x85ebca6b;
    c = (rotl<u32>(c, 11) ^ word) * 0xc2b2ae35;
    at += 4;
  }
  a = mixed(a ^ (<u32>(end - start)));
  b = mixed(b ^ a);
  c = mixed(c ^ b);
  store<u32>(target, mixed(a + c));
  store<u32>(target, b, 4);
  store<u32>(target, c, 8);
}

function mixed(word: u32): u32 {
  let h = word;
  h = (h ^ (h >> 16)) * 0x7feb352d;
  h = (h ^ (h >> 15)) * 0x846ca68b;
  return h ^ (h >> 16);
}
