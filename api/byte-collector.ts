const FIRST_BYTES = 4 * 1024;

/**
 * Joins pieces as they come, in one buffer that doubles when it is full. A list of the pieces would take
 * a hundred times their memory if a client sends one byte at a time.
 */
export class ByteCollector {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(FIRST_BYTES, length, 2 * this.#bytes.length));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    piece.copy(this.#bytes, this.#length);
    this.#length = length;
  }

  /** All bytes so far; later pieces do not change them. */
  all(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}
