const FIBONACCI = 0x9e3779b1 | 0;
const LEAST_BITS = 4;

/**
 * Numbers 32-bit keys in the order in which they first appear. It is an open hash table in two arrays, which are used
 * again for the next set of keys: a `Map` costs three times as much for keys that are all different.
 */
export class GroupTable {
  #keys = new Uint32Array(1 << LEAST_BITS);
  /** The number of a key's group plus 1; 0 for an empty place. */
  #numbers = new Uint32Array(1 << LEAST_BITS);
  #bits = LEAST_BITS;

  /** Forgets all keys. At most `most` may be added before the next call. */
  reset(most: number): void {
    // At most half full, so that few places are looked at.
    this.#bits = Math.max(LEAST_BITS, 33 - Math.clz32(most));
    const places = 1 << this.#bits;
    if (places <= this.#numbers.length) {
      this.#numbers.fill(0, 0, places);
    } else {
      this.#keys = new Uint32Array(places);
      this.#numbers = new Uint32Array(places);
    }
  }

  /** The number of the group of `key`, which is `next` if the key is new. */
  numberOf(key: number, next: number): number {
    const last = (1 << this.#bits) - 1;
    let place = Math.imul(key, FIBONACCI) >>> (32 - this.#bits);
    for (let number = this.#numbers[place] ?? 0; number !== 0;) {
      if (this.#keys[place] === key) return number - 1;
      place = (place + 1) & last;
      number = this.#numbers[place] ?? 0;
    }
    this.#keys[place] = key;
    this.#numbers[place] = next + 1;
    return next;
  }
}
