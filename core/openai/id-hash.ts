/** Words of a hash. */
export const ID_HASH_WORDS = 3;

/**
 * A function that hashes ids: three 32-bit hashes over their UTF-8 bytes, four at a time. Each is a chain of bijections
 * with its own rotation and multiplier, so that ids which differ in one place never collide; at the end the three are
 * mixed. `seed` is random, so that no client can choose ids whose hashes are alike. The program of the line index computes
 * the same (core/assembly/id-hash.ts). The result is valid until the next call.
 */
export function createIdHasher(seed: number): (id: string) => Uint32Array {
  const hash = new Uint32Array(ID_HASH_WORDS);
  return (id) => {
    hashInto(hash, bytesOf(id), seed);
    return hash;
  };
}

/** Lone surrogates have no UTF-8. Such an id is told from all others by a byte that UTF-8 does not have. */
function bytesOf(id: string): Buffer {
  const utf8 = Buffer.from(id, 'utf8');
  if (utf8.toString('utf8') === id) return utf8;
  return Buffer.concat([Buffer.from([0xff]), Buffer.from(id, 'utf16le')]);
}

function hashInto(hash: Uint32Array, bytes: Buffer, seed: number): void {
  let a = seed | 0;
  let b = Math.imul(seed ^ 0x5bd1e995, 0x7feb352d);
  let c = Math.imul(seed ^ 0x2545f491, 0x846ca68b);
  for (let at = 0; at < bytes.length; at += 4) {
    // Bytes behind the end count as zeros. The length, mixed in below, tells them from those of a longer id.
    const word = byte(bytes, at) | (byte(bytes, at + 1) << 8) | (byte(bytes, at + 2) << 16);
    const whole = word | (byte(bytes, at + 3) << 24);
    a = Math.imul(((a << 13) | (a >>> 19)) ^ whole, 0x2c1b3c6d);
    b = Math.imul(((b << 15) | (b >>> 17)) ^ whole, 0x85ebca6b);
    c = Math.imul(((c << 11) | (c >>> 21)) ^ whole, 0xc2b2ae35);
  }
  a = mixed(a ^ bytes.length);
  b = mixed(b ^ a);
  c = mixed(c ^ b);
  hash[0] = mixed(a + c);
  hash[1] = b;
  hash[2] = c;
}

function byte(bytes: Buffer, at: number): number {
  return bytes[at] ?? 0;
}

/** A bijection in which every input bit affects every output bit. */
function mixed(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return h ^ (h >>> 16);
}
