const FIRST_BYTES = 16_384;
const EMPTY = Buffer.alloc(0);

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
 * Collects a body in one buffer, which doubles as bytes arrive. What a client declares reserves nothing: a few that
 * declare much and send little would keep all others out. A list of pieces would cost more: a piece of one byte takes hundreds of bytes
 * of heap, so a client could use many times the memory that was reserved for it.
 */
export class BodyBuffer {
  readonly #options: BodyBufferOptions;
  #buffer: Buffer = EMPTY;
  #length = 0;

  constructor(options: BodyBufferOptions) {
    this.#options = options;
  }

  /** Bytes that were appended. */
  get length(): number {
    return this.#length;
  }

  /** Returns false if there is no room for the piece. */
  append(piece: Buffer): boolean {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length && !this.#grow(length)) return false;
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
    return true;
  }

  /** The body, in a buffer of its length. Nothing is kept. */
  finish(): Buffer {
    const all = this.#buffer;
    this.#buffer = EMPTY;
    return all.length === this.#length ? all : Buffer.from(all.subarray(0, this.#length));
  }

  #grow(length: number): boolean {
    const { declaredBytes, maxBytes } = this.#options;
    let doubled = FIRST_BYTES;
    while (doubled < length) doubled *= 2;
    const capacity = Math.max(length, Math.min(doubled, declaredBytes ?? maxBytes));
    if (!this.#options.reserve(capacity - this.#buffer.length)) return false;
    const grown = Buffer.allocUnsafe(capacity);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
    return true;
  }
}
