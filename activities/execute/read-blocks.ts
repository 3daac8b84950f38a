/** Lines up to here share blocks; a block is larger than nearly every line. */
const BLOCK_BYTES = 16 * 1024;
const KEPT_BLOCKS = 1_024;

/**
 * Blocks that request lines are read into, used again and again: a fresh buffer for each line of 4 KB
 * is garbage of gigabytes a batch, and the allocator's holes stay in the process.
 */
export class ReadBlocks {
  readonly #free: Buffer[] = [];

  /** A block for `length` bytes; undefined where the line is too long for one. */
  take(length: number): Buffer | undefined {
    if (length > BLOCK_BYTES) return undefined;
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  /** Only a block that nobody reads any more: its request must have been answered. */
  giveBack(block: Buffer | undefined): void {
    if (block !== undefined && this.#free.length < KEPT_BLOCKS) this.#free.push(block);
  }
}
