const { floor, imul } = Math;
const TWO_POW_32 = 2 ** 32;

/**
 * Tells whether two runs over lines met the same ones, in whatever order, at the cost of two numbers.
 * Lines are named by their offset, and each run names a line once. Equal sets always tally; others do
 * so by chance alone, about once in 2^64.
 */
export class LineTally {
  #first = 0;
  #second = 0;

  add(offset: number): void {
    const low = offset | 0;
    const high = floor(offset / TWO_POW_32);
    this.#first = (this.#first + mixed(low, high + 1)) | 0;
    this.#second = (this.#second + mixed(~low, high + 0x51ed270b)) | 0;
  }

  equals(other: LineTally): boolean {
    return this.#first === other.#first && this.#second === other.#second;
  }
}

/** 32 bits that neighbouring offsets share nothing of: sums of offsets themselves agree too easily. */
function mixed(low: number, seed: number): number {
  let h = low ^ imul(seed, 0x9e3779b1);
  h = imul(h ^ (h >>> 16), 0x7feb352d);
  h = imul(h ^ (h >>> 15), 0x846ca68b);
  return h ^ (h >>> 16);
}
