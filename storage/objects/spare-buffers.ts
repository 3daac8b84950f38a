/**
 * Buffers of one size that are used one after the other. New memory for each would cost collections of the heap: V8 does not
 * see how cheap large buffers are to free.
 */
export class SpareBuffers {
  readonly #bytes: number;
  readonly #most: number;
  readonly #spare: Buffer[] = [];

  /** @param most how many unused buffers are kept */
  constructor(bytes: number, most: number) {
    this.#bytes = bytes;
    this.#most = most;
  }

  take(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
  }

  /** Takes back a buffer, or a part of one, that is no longer used. Buffers of other sizes are let go. */
  giveBack({ buffer }: Buffer): void {
    if (buffer.byteLength !== this.#bytes || this.#spare.length === this.#most) return;
    this.#spare.push(Buffer.from(buffer));
  }
}
