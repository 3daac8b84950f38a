/** Above this number, shares that can be forgotten are looked for. */
const REMEMBERED = 64;

/**
 * Shares by name, created on first use. Clients choose the names, so shares that would be created anew with
 * the same tags are forgotten. Looking for them costs O(1) steps for each new share, on average.
 */
export class ShareTable<S> {
  readonly #shares = new Map<string, S>();
  readonly #isSpent: (share: S) => boolean;
  #sweepAt = REMEMBERED;

  /** @param isSpent whether a share has neither requests nor a debt */
  constructor(isSpent: (share: S) => boolean) {
    this.#isSpent = isSpent;
  }

  [Symbol.iterator](): Iterator<S> {
    return this.#shares.values();
  }

  find(name: string): S | undefined {
    return this.#shares.get(name);
  }

  add(name: string, share: S): S {
    if (this.#shares.size >= this.#sweepAt) this.#sweep();
    this.#shares.set(name, share);
    return share;
  }

  #sweep(): void {
    for (const [name, share] of this.#shares) if (this.#isSpent(share)) this.#shares.delete(name);
    this.#sweepAt = Math.max(REMEMBERED, 2 * this.#shares.size);
  }
}
