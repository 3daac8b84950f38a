/** The blocks of a prompt: rolling hashes, of which the first `length` count (core/plan/prefix-chain.ts). */
export interface PromptBlocks {
  readonly blocks: ArrayLike<number>;
  readonly length: number;
}

/** A block has 256 bytes, and a token about four. */
const TOKENS_PER_BLOCK = 64;

/**
 * Guesses which backend still has which prompts in its prefix cache, from what was sent there
 * (docs/design/flow-control.md#choice-of-a-backend). Model servers do not tell. Like their caches, it keeps
 * the least recently used blocks of each backend up to a number of tokens.
 *
 * A prefix outlives what follows it: the blocks of a prompt are used from its end to its beginning. So if a
 * block is known, all blocks before it are, and a match is found by bisection.
 */
export class PrefixIndex<Backend> {
  readonly #capacity: number;
  /** Blocks of each backend, the least recently used one first. */
  readonly #blocks = new Map<Backend, Set<number>>();

  /** @param cacheTokens what one backend caches (`affinity.cache_tokens`) */
  constructor(cacheTokens: number) {
    this.#capacity = Math.max(1, Math.floor(cacheTokens / TOKENS_PER_BLOCK));
  }

  /** How many blocks of a prompt the backend should have. */
  match(backend: Backend, { blocks, length }: PromptBlocks): number {
    const known = this.#blocks.get(backend);
    if (known === undefined) return 0;
    let least = 0;
    let most = length;
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (known.has(blocks[middle - 1] ?? 0)) least = middle;
      else most = middle - 1;
    }
    return least;
  }

  /**
   * A prompt is sent to a backend. Blocks that another backend has are not recorded yet: until the prompt is
   * computed here too, requests with the same prefix should go there.
   */
  onSent(backend: Backend, prompt: PromptBlocks): void {
    let elsewhere = 0;
    for (const other of this.#blocks.keys()) {
      if (other !== backend) elsewhere = Math.max(elsewhere, this.match(other, prompt));
    }
    const here = this.match(backend, prompt);
    if (here >= elsewhere) this.onComputed(backend, prompt);
    else this.#use(backend, prompt, here);
  }

  /** A backend has begun to answer a prompt, so its cache holds all blocks of it. */
  onComputed(backend: Backend, prompt: PromptBlocks): void {
    this.#use(backend, prompt, prompt.length);
  }

  /** Marks the first `length` blocks as just used. */
  #use(backend: Backend, { blocks }: PromptBlocks, length: number): void {
    let known = this.#blocks.get(backend);
    if (known === undefined) this.#blocks.set(backend, (known = new Set()));
    for (let i = Math.min(length, this.#capacity) - 1; i >= 0; i--) {
      const block = blocks[i] ?? 0;
      known.delete(block);
      known.add(block);
    }
    for (const oldest of known) {
      if (known.size <= this.#capacity) return;
      known.delete(oldest);
    }
  }

  /** A backend has restarted or is gone: its cache is empty. */
  forget(backend: Backend): void {
    this.#blocks.delete(backend);
  }
}
