const { floor, imul } = Math;
const TWO_POW_32 = 2 ** 32;

/**
 * A checksum over a set of lines that does not depend on their order, in constant memory
 * (docs/design/journal.md#checksum-of-the-lines). Lines are identified by their offsets, each added once.
 * Equal sets have equal checksums. Two different sets have equal ones with a probability of about 2^-64.
 */
export class LineChecksum {
  #first = 0;
  #second = 0;

  add(offset: number): void {
    const low = offset | 0;
    const high = floor(offset / TWO_POW_32);
    this.#first = (this.#first + mixed(low, high + 1)) | 0;
    this.#second = (this.#second + mixed(~low, high + 0x51ed270b)) | 0;
  }

  /** Adds lines that were added up elsewhere, as core/assembly/frame-run.ts does it. */
  addSums(first: number, second: number): void {
    this.#first = (this.#first + first) | 0;
    this.#second = (this.#second + second) | 0;
  }

  equals(other: LineChecksum): boolean {
    return this.#first === other.#first && this.#second === other.#second;
  }
}

/** 32 well-mixed bits of an offset, because plain sums of offsets would often be equal. */
function mixed(low: number, seed: number): number {
  let h = low ^ imul(seed, 0x9e3779b1);
  h = imul(h ^ (h >>> 16), 0x7feb352d);
  h = imul(h ^ (h >>> 15), 0x846ca68b);
  return h ^ (h >>> 16);
}
