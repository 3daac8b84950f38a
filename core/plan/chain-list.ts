import type { PrefixChain } from './prefix-chain';

const PAGE_BITS = 14;
const PAGE_NUMBERS = 1 << PAGE_BITS;

/** A growing list of 32-bit numbers in pages, so that it grows without copying. */
class NumberList {
  readonly #pages: Uint32Array[] = [];
  #last = new Uint32Array(0);
  length = 0;

  push(value: number): void {
    const at = this.length & (PAGE_NUMBERS - 1);
    if (at === 0) this.#grow();
    this.#last[at] = value;
    this.length++;
  }

  /** Adds `count` of `values` from `first` on. */
  append(values: Uint32Array, first: number, count: number): void {
    const end = first + count;
    for (let from = first; from < end;) {
      const at = this.length & (PAGE_NUMBERS - 1);
      if (at === 0) this.#grow();
      const page = this.#last;
      const taken = Math.min(end - from, PAGE_NUMBERS - at);
      // Chains are short: a native copy costs more to begin than this loop.
      for (let i = 0; i < taken; i++) page[at + i] = values[from + i] ?? 0;
      from += taken;
      this.length += taken;
    }
  }

  #grow(): void {
    this.#last = new Uint32Array(PAGE_NUMBERS);
    this.#pages.push(this.#last);
  }

  at(index: number): number {
    return this.#pages[index >>> PAGE_BITS]?.[index & (PAGE_NUMBERS - 1)] ?? 0;
  }
}

/**
 * The chains of a plan's lines, by entry number. It takes 4 bytes for each 256 bytes of prompts, and 4 bytes
 * for each line from the first one on whose prompt fills a block.
 */
export class ChainList {
  readonly #blocks = new NumberList();
  /** Where the chain of each line ends in `#blocks`, from line `#first` on. */
  readonly #ends = new NumberList();
  /** The first line with a chain; -1 if there is none. */
  #first = -1;
  #lines = 0;

  /** Whether no line has a chain. */
  get isEmpty(): boolean {
    return this.#first === -1;
  }

  /** Adds the chain of the next line. */
  push({ blocks, from, length }: PrefixChain): void {
    const line = this.#lines++;
    if (length === 0 && this.#first === -1) return;
    if (this.#first === -1) this.#first = line;
    this.#blocks.append(blocks, from, length);
    this.#ends.push(this.#blocks.length);
  }

  /**
   * Where the chain of each line begins in the list of all blocks, and where the last one ends. One array, because it is read
   * in every step of the order.
   */
  bounds(): Uint32Array {
    const bounds = new Uint32Array(this.#lines + 1);
    const first = this.isEmpty ? this.#lines : this.#first;
    for (let line = first; line < this.#lines; line++)
      bounds[line + 1] = this.#ends.at(line - first);
    return bounds;
  }

  /** A block of the list: the hash of a line's prompt up to and including it. */
  at(index: number): number {
    return this.#blocks.at(index);
  }
}
