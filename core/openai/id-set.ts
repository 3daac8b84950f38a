/**
 * A set of strings in 20 bytes each, whatever their length. It holds 96-bit hashes, not the strings:
 * the chance that any two of a million different ones are taken for the same is below 10^-17.
 */
export interface IdSet {
  readonly size: number;
  /** False where the very same string was added before. */
  add(id: string): boolean;
}

const FIRST_SLOTS = 1024;
/** Hashes lie in pages, so that growing copies nothing: 16 Ki of three words each. */
const PAGE_SHIFT = 14;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;
const WORDS = 3;

/**
 * An empty set. Hashes lie one after the other, found through an open-addressed table of their
 * numbers. `seed` is random: nobody can choose ids that all collide.
 */
export function createIdSet(seed: number): IdSet {
  const hash = new Uint32Array(WORDS);
  const pages: Uint32Array[] = [];
  /** Number of the id + 1, 0 for a free slot; never more than half full. */
  let slots = new Uint32Array(FIRST_SLOTS);
  let size = 0;

  /** The slot that holds `hash`, or the free one where it belongs. */
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
      pages[size >>> PAGE_SHIFT]?.set(hash, (size & PAGE_MASK) * WORDS);
      slots[slot] = ++size;
      if (2 * size >= slots.length) grow();
      return true;
    },
  };
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
 * Three lanes over the code units, two at a time. A lane is a chain of bijections, of its own rotation
 * and multiplier, so that strings which differ in one place never meet; at the end the lanes mix.
 */
function hashInto(hash: Uint32Array, id: string, seed: number): void {
  let a = seed | 0;
  let b = Math.imul(seed ^ 0x5bd1e995, 0x7feb352d);
  let c = Math.imul(seed ^ 0x2545f491, 0x846ca68b);
  for (let i = 0; i < id.length; i += 2) {
    // Behind an odd end comes NaN, which counts 0: the length, mixed in below, tells the two apart.
    const pair = id.charCodeAt(i) | (id.charCodeAt(i + 1) << 16);
    a = Math.imul(((a << 13) | (a >>> 19)) ^ pair, 0x2c1b3c6d);
    b = Math.imul(((b << 15) | (b >>> 17)) ^ pair, 0x85ebca6b);
    c = Math.imul(((c << 11) | (c >>> 21)) ^ pair, 0xc2b2ae35);
  }
  a = scrambled(a ^ id.length);
  b = scrambled(b ^ a);
  c = scrambled(c ^ b);
  hash[0] = scrambled(a + c);
  hash[1] = b;
  hash[2] = c;
}

/** Every bit has a say in every other; one to one. */
function scrambled(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return h ^ (h >>> 16);
}
