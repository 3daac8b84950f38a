/** The last bytes of an answer, kept without a copy. */
export class AnswerTail {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #keptBytes = 0;

  /** Keeps at least the last `maxBytes` bytes, and at most one chunk more. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.length;
    for (;;) {
      const oldest = this.#chunks[0]?.length ?? 0;
      if (oldest === 0 || this.#keptBytes - oldest < this.#maxBytes) return;
      this.#chunks.shift();
      this.#keptBytes -= oldest;
    }
  }

  /** The last bytes, at most `maxBytes`. */
  read(): Buffer {
    const [only] = this.#chunks;
    const all =
      only !== undefined && this.#chunks.length === 1 ? only : Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - this.#maxBytes));
  }
}
