/** Nearly every line fits into a block. */
const BLOCK_BYTES = 16 * 1024;
const KEPT_BLOCKS = 1_024;

/**
 * Reusable buffers for reading request lines. A new buffer for each line of 4 KB would be gigabytes of
 * garbage per batch, and the process would keep the fragmented memory.
 */
export class ReadBlocks {
  readonly #free: Buffer[] = [];

  /** A block for `length` bytes; undefined if the line is too long for one. */
  take(length: number): Buffer | undefined {
    if (length > BLOCK_BYTES) return undefined;
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  /** Takes a block back. Nothing may read it any more: its request was answered or never sent. */
  giveBack(block: Buffer | undefined): void {
    if (block !== undefined && this.#free.length < KEPT_BLOCKS) this.#free.push(block);
  }
}
