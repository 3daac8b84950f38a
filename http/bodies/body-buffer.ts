const FIRST_BYTES = 16_384;

/** What a {@link BodyBuffer} is opened with. */
export interface BodyBufferOptions {
  /** `content-length`; null if the client does not declare it. */
  readonly declaredBytes: number | null;
  /** Largest capacity. */
  readonly maxBytes: number;
  /** Whether the memory may be used; asked before it is. */
  readonly reserve: (bytes: number) => boolean;
}

/**
 * Collects a body in one growing buffer. A list of pieces would cost more: a piece of one byte takes hundreds of bytes
 * of heap, so a client could use many times the memory that was reserved for it.
 */
export class BodyBuffer {
  readonly #options: BodyBufferOptions;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;
  #reserved = 0;

  constructor(options: BodyBufferOptions) {
    this.#options = options;
  }

  /** Bytes that were appended. */
  get length(): number {
    return this.#length;
  }

  /** Reserves the declared length, so that a body for which there is no room is refused before it is sent. */
  open(): boolean {
    return this.#reserveUpTo(this.#options.declaredBytes ?? 0);
  }

  /** Returns false if there is no room for the piece. */
  append(piece: Buffer): boolean {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length && !this.#grow(length)) return false;
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
    return true;
  }

  /** The body, in a buffer of its length. */
  finish(): Buffer {
    const body = this.#buffer.subarray(0, this.#length);
    return body.length === this.#buffer.length ? body : Buffer.from(body);
  }

  #grow(length: number): boolean {
    const { declaredBytes, maxBytes } = this.#options;
    const doubled = Math.max(length, 2 * this.#buffer.length, FIRST_BYTES);
    const capacity = Math.max(length, Math.min(doubled, declaredBytes ?? maxBytes));
    if (!this.#reserveUpTo(capacity)) return false;
    const grown = Buffer.allocUnsafe(capacity);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
    return true;
  }

  #reserveUpTo(bytes: number): boolean {
    const missing = bytes - this.#reserved;
    if (missing <= 0) return true;
    if (!this.#options.reserve(missing)) return false;
    this.#reserved = bytes;
    return true;
  }
}
