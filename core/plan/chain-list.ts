import type { PrefixChain } from './prefix-chain';

const PAGE_BITS = 14;
const PAGE_NUMBERS = 1 << PAGE_BITS;

/** A growing list of 32-bit numbers in pages, so that it grows without copying. */
class NumberList {
  readonly #pages: Uint32Array[] = [];
  length = 0;

  push(value: number): void {
    const at = this.length & (PAGE_NUMBERS - 1);
    if (at === 0) this.#pages.push(new Uint32Array(PAGE_NUMBERS));
    const page = this.#pages[this.length >>> PAGE_BITS];
    if (page !== undefined) page[at] = value;
    this.length++;
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
  push({ blocks, length }: PrefixChain): void {
    const line = this.#lines++;
    if (length === 0 && this.#first === -1) return;
    if (this.#first === -1) this.#first = line;
    for (let i = 0; i < length; i++) this.#blocks.push(blocks[i] ?? 0);
    this.#ends.push(this.#blocks.length);
  }

  /** Number of blocks of a line. */
  lengthOf(line: number): number {
    return line < this.#first || this.isEmpty ? 0 : this.#end(line) - this.#start(line);
  }

  /** The hash of a line's prompt up to and including block `depth`, which must be below its length. */
  blockOf(line: number, depth: number): number {
    return this.#blocks.at(this.#start(line) + depth);
  }

  #start(line: number): number {
    return line === this.#first ? 0 : this.#end(line - 1);
  }

  #end(line: number): number {
    return this.#ends.at(line - this.#first);
  }
}
