import { ID_HASH_WORDS } from './id-hash';

/**
 * A set of ids that takes 16 to 32 bytes per id of any length, because it holds their 96-bit hashes
 * (core/openai/id-hash.ts). Among a million different ids, the probability of any collision is below 10^-17.
 */
export interface IdSet {
  readonly size: number;
  /** Takes the hash at `at` of `words`. False if it was added before. */
  add(words: Uint32Array, at: number): boolean;
  /**
   * Loads the places of hashes that are about to be added, `stride` words apart from `at` to `end`. It changes nothing. As
   * none of these accesses waits for another one, the processor makes many of them at once.
   */
  prefetch(words: Uint32Array, range: PrefetchRange): void;
  /** Forgets all ids, and keeps the memory. */
  clear(): void;
}

/** Where hashes are in an array of words. */
export interface PrefetchRange {
  readonly at: number;
  readonly end: number;
  readonly stride: number;
}

const FIRST_BITS = 10;
/** At most this share of the places is taken, in quarters. */
const FULL_QUARTERS = 3;

/**
 * An empty set: one hash table with open addressing, which holds the hashes themselves, so that an id that is new costs
 * one access to memory. The highest bits of a hash are its place, so a table is copied to a larger one from its start to
 * its end, without jumps.
 */
export function createIdSet(): IdSet {
  return new HashTable();
}

class HashTable implements IdSet {
  #bits = FIRST_BITS;
  /** Three words for each place. All zero is a free place. */
  #table = new Uint32Array(ID_HASH_WORDS << FIRST_BITS);
  size = 0;
  /** The one hash that looks like a free place. */
  #hasZero = false;
  /** What was loaded ahead: without a use for it, a compiler could leave the loads out. */
  #loaded = 0;

  add(words: Uint32Array, at: number): boolean {
    const a = words[at] ?? 0;
    const b = words[at + 1] ?? 0;
    const c = words[at + 2] ?? 0;
    if ((a | b | c) === 0) return this.#addZero();
    const place = this.#placeOf(a, b, c);
    if (place < 0) return false;
    const table = this.#table;
    table[place] = a;
    table[place + 1] = b;
    table[place + 2] = c;
    this.size++;
    if (4 * this.size >= FULL_QUARTERS << this.#bits) this.#grow();
    return true;
  }

  prefetch(words: Uint32Array, { at, end, stride }: PrefetchRange): void {
    const table = this.#table;
    const shift = 32 - this.#bits;
    let loaded = 0;
    for (let i = at; i < end; i += stride) {
      loaded ^= table[((words[i] ?? 0) >>> shift) * ID_HASH_WORDS] ?? 0;
    }
    this.#loaded = loaded;
  }

  clear(): void {
    this.#table.fill(0);
    this.#hasZero = false;
    this.size = 0;
  }

  #addZero(): boolean {
    if (this.#hasZero) return false;
    this.#hasZero = true;
    this.size++;
    return true;
  }

  /** The free place where a hash belongs; -1 if the table has it. */
  #placeOf(a: number, b: number, c: number): number {
    const table = this.#table;
    let at = (a >>> (32 - this.#bits)) * ID_HASH_WORDS;
    for (;;) {
      const first = table[at] ?? 0;
      const second = table[at + 1] ?? 0;
      const third = table[at + 2] ?? 0;
      if ((first | second | third) === 0) return at;
      if (first === a && second === b && third === c) return -1;
      at += ID_HASH_WORDS;
      if (at === table.length) at = 0;
    }
  }

  #grow(): void {
    const old = this.#table;
    this.#bits++;
    this.#table = new Uint32Array(ID_HASH_WORDS << this.#bits);
    copyHashes(old, this.#table, 32 - this.#bits);
  }
}

/** Copies hashes, which are all different, to a table of which the places are `shift` bits above the lowest one of a hash. */
function copyHashes(from: Uint32Array, to: Uint32Array, shift: number): void {
  for (let at = 0; at < from.length; at += ID_HASH_WORDS) {
    const a = from[at] ?? 0;
    const b = from[at + 1] ?? 0;
    const c = from[at + 2] ?? 0;
    if ((a | b | c) === 0) continue;
    let place = (a >>> shift) * ID_HASH_WORDS;
    while (((to[place] ?? 0) | (to[place + 1] ?? 0) | (to[place + 2] ?? 0)) !== 0) {
      place += ID_HASH_WORDS;
      if (place === to.length) place = 0;
    }
    to[place] = a;
    to[place + 1] = b;
    to[place + 2] = c;
  }
}
