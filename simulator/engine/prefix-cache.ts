/** Tokens in one block, as in vLLM. */
export const BLOCK_TOKENS = 16;

/**
 * Which blocks of prompts are cached, least recently used first. A block is named by a hash of everything
 * up to its end ({@link blocksOf}), so a block that is present means that its whole prefix was computed.
 *
 * The front of a prompt is shared more often than its end. So each use marks the blocks from the last to
 * the first, and the ends of prompts are evicted first.
 */
export class PrefixCache {
  readonly #blocks = new Set<number>();
  #capacity: number;

  /** @param capacity blocks */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Blocks in the cache. */
  get size(): number {
    return this.#blocks.size;
  }

  /** Evicts what no longer fits. */
  resize(capacity: number): void {
    this.#capacity = capacity;
    this.#evict();
  }

  /** Counts the leading blocks that are cached and marks them as used. Costs one step per block. */
  hits(blocks: readonly number[]): number {
    let count = 0;
    while (count < blocks.length && this.#blocks.has(blocks[count] ?? 0)) count++;
    this.#use(blocks, count);
    return count;
  }

  /** Adds the blocks of one prompt. Of a prompt that is larger than the cache, its front stays. */
  insert(blocks: readonly number[]): void {
    this.#use(blocks, Math.min(blocks.length, this.#capacity));
    this.#evict();
  }

  #use(blocks: readonly number[], count: number): void {
    for (let i = count - 1; i >= 0; i--) {
      const block = blocks[i] ?? 0;
      this.#blocks.delete(block);
      this.#blocks.add(block);
    }
  }

  #evict(): void {
    for (const oldest of this.#blocks) {
      if (this.#blocks.size <= this.#capacity) return;
      this.#blocks.delete(oldest);
    }
  }
}
