/**
 * A set of strings that takes 20 bytes per string of any length, because it holds 96-bit hashes. Among a
 * million different strings, the probability of any collision is below 10^-17.
 */
export interface IdSet {
  readonly size: number;
  /** False if the same string was added before. */
  add(id: string): boolean;
}

const FIRST_SLOTS = 1024;
/** Hashes are kept in pages of 16 Ki hashes, three words each, so that growing copies nothing. */
const PAGE_SHIFT = 14;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;
const WORDS = 3;

/**
 * An empty set: a list of hashes, and a hash table of their positions with open addressing. `seed` is
 * random, so that no client can choose ids that all fall into the same slot.
 */
export function createIdSet(seed: number): IdSet {
  const hash = new Uint32Array(WORDS);
  const pages: Uint32Array[] = [];
  /** Position of the hash + 1, or 0 for a free slot. At most half full. */
  let slots = new Uint32Array(FIRST_SLOTS);
  let size = 0;

  /** The slot that holds `hash`, or the free slot where it belongs. */
  function slotOf(): number {
    const mask = slots.length - 1;
    for (let slot = (hash[0] as number) & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot] as number;
      if (number === 0 || isAt(pages, number - 1, hash)) return slot;
    }
  }

  function grow(): void {
    slots = new Uint32Array(2 * slots.length);
    const mask = slots.length - 1;
    for (let i = 0; i < size; i++) {
      const first = pages[i >>> PAGE_SHIFT]?.[(i & PAGE_MASK) * WORDS] ?? 0;
      let slot = first & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = i + 1;
    }
  }

  return {
    get size() {
      return size;
    },
    add(id) {
      hashInto(hash, id, seed);
      const slot = slotOf();
      if (slots[slot] !== 0) return false;
      if ((size & PAGE_MASK) === 0) pages.push(new Uint32Array(WORDS << PAGE_SHIFT));
      put(pages, size, hash);
      slots[slot] = ++size;
      if (2 * size >= slots.length) grow();
      return true;
    },
  };
}

/** Three writes: a native copy costs more to begin. */
function put(pages: readonly Uint32Array[], number: number, hash: Uint32Array): void {
  const page = pages[number >>> PAGE_SHIFT];
  const at = (number & PAGE_MASK) * WORDS;
  if (page === undefined) return;
  for (let i = 0; i < WORDS; i++) page[at + i] = hash[i] ?? 0;
}

function isAt(pages: readonly Uint32Array[], number: number, hash: Uint32Array): boolean {
  const page = pages[number >>> PAGE_SHIFT];
  const at = (number & PAGE_MASK) * WORDS;
  return (
    page !== undefined &&
    page[at] === hash[0] &&
    page[at + 1] === hash[1] &&
    page[at + 2] === hash[2]
  );
}

/**
 * Three 32-bit hashes over the code units, two at a time. Each is a chain of bijections with its own
 * rotation and multiplier, so that strings which differ in one place never collide; at the end the three
 * are mixed.
 */
function hashInto(hash: Uint32Array, id: string, seed: number): void {
  let a = seed | 0;
  let b = Math.imul(seed ^ 0x5bd1e995, 0x7feb352d);
  let c = Math.imul(seed ^ 0x2545f491, 0x846ca68b);
  for (let i = 0; i < id.length; i += 2) {
    // Behind an odd end, `charCodeAt` is NaN, which becomes 0. The length, mixed in below, distinguishes
    // this from a text that ends with U+0000.
    const pair = id.charCodeAt(i) | (id.charCodeAt(i + 1) << 16);
    a = Math.imul(((a << 13) | (a >>> 19)) ^ pair, 0x2c1b3c6d);
    b = Math.imul(((b << 15) | (b >>> 17)) ^ pair, 0x85ebca6b);
    c = Math.imul(((c << 11) | (c >>> 21)) ^ pair, 0xc2b2ae35);
  }
  a = mixed(a ^ id.length);
  b = mixed(b ^ a);
  c = mixed(c ^ b);
  hash[0] = mixed(a + c);
  hash[1] = b;
  hash[2] = c;
}

/** A bijection in which every input bit affects every output bit. */
function mixed(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return h ^ (h >>> 16);
}
