/** Nearly every line fits into a block. */
const BLOCK_BYTES = 16 * 1024;
const KEPT_BLOCKS = 1_024;

/**
 * Blocks for reading request lines, which are used again. A new buffer for each line of 4 KB would be
 * gigabytes of garbage per batch, and the fragmented memory would stay with the process.
 */
export class ReadBlocks {
  readonly #free: Buffer[] = [];

  /** A block for `length` bytes; undefined if the line is too long for one. */
  take(length: number): Buffer | undefined {
    if (length > BLOCK_BYTES) return undefined;
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  /** Takes a block back. Nothing may read it any more, so its request must have been answered. */
  giveBack(block: Buffer | undefined): void {
    if (block !== undefined && this.#free.length < KEPT_BLOCKS) this.#free.push(block);
  }
}
