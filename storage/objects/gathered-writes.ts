/** Most objects are small, and large new buffers make V8 collect the whole heap every few objects. */
const FIRST_BYTES = 64 * 1024;
const BUFFER_BYTES = 512 * 1024;

/** Writes bytes behind those before. */
export type Write = (bytes: Uint8Array) => Promise<void>;

/**
 * Writes small pieces together, because to begin a write takes the thread 60 µs and a connection gives 64 KiB at a time. One
 * buffer is written while the next one is filled. Not for concurrent calls.
 */
export class GatheredWrites {
  readonly #write: Write;
  #filling: Buffer | null = null;
  #filled = 0;
  /** Is written, or free. */
  #other: Buffer | null = null;
  #nextBytes = FIRST_BYTES;
  #running: Promise<void> = Promise.resolve();

  constructor(write: Write) {
    this.#write = write;
  }

  /** Takes a piece, which may be changed when this resolves. @throws the error of this or an earlier write */
  async add(piece: Uint8Array): Promise<void> {
    if (piece.length >= BUFFER_BYTES) return this.#addAlone(piece);
    for (let from = 0; from < piece.length;) {
      const buffer = (this.#filling ??= this.#nextBuffer());
      const part = piece.subarray(from, from + buffer.length - this.#filled);
      buffer.set(part, this.#filled);
      this.#filled += part.length;
      from += part.length;
      if (this.#filled === buffer.length) await this.#begin();
    }
  }

  /** Resolves when everything is written. @throws the error of any write */
  async finish(): Promise<void> {
    await this.#begin();
    await this.#running;
  }

  /** Resolves when nothing is being written any more. What was gathered is dropped. */
  async abandon(): Promise<void> {
    await this.#running.catch(() => undefined);
  }

  async #addAlone(piece: Uint8Array): Promise<void> {
    await this.finish();
    await this.#write(piece);
  }

  /** Begins to write what was gathered, once the write before has ended. */
  async #begin(): Promise<void> {
    await this.#running;
    const full = this.#filling;
    if (full === null || this.#filled === 0) return;
    this.#running = this.#write(full.subarray(0, this.#filled));
    // Its error is thrown by the next call.
    this.#running.catch(() => undefined);
    this.#filling = this.#other;
    this.#other = full.length === BUFFER_BYTES ? full : null;
    this.#filled = 0;
  }

  #nextBuffer(): Buffer {
    const buffer = Buffer.allocUnsafeSlow(this.#nextBytes);
    this.#nextBytes = BUFFER_BYTES;
    return buffer;
  }
}
