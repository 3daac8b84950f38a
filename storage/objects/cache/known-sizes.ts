/** About 5 MB of keys. */
const MAX_KEYS = 16_384;

/** Sizes of objects that were seen lately. */
export class KnownSizes {
  readonly #sizes = new Map<string, number>();

  get(key: string): number | undefined {
    return this.#sizes.get(key);
  }

  /** Forgets the key that was set first, if there are too many. */
  set(key: string, size: number): void {
    this.#sizes.delete(key);
    this.#sizes.set(key, size);
    if (this.#sizes.size <= MAX_KEYS) return;
    for (const oldest of this.#sizes.keys()) {
      this.#sizes.delete(oldest);
      return;
    }
  }

  delete(key: string): void {
    this.#sizes.delete(key);
  }
}
