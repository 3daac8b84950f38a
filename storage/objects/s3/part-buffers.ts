/**
 * The least that S3 accepts. In the memory of few large parts, more small ones are on their way at once, and the
 * last one is sooner there.
 */
export const FIRST_PART_BYTES = 5 * 1024 ** 2;
/** S3 accepts 10,000 parts. Doubling the size every 1,000 parts allows 4.8 TiB. */
const PARTS_PER_SIZE = 1_000;
/** Short objects need no buffer of a whole part. */
const SMALLEST_BYTES = 64 * 1024;
/** Idle buffers that the process keeps: 60 MiB. */
const MAX_IDLE = 12;

/** Bytes of part `number`, counted from 1. All parts but the last have exactly this size. */
function partBytes(number: number): number {
  return FIRST_PART_BYTES * 2 ** Math.floor((number - 1) / PARTS_PER_SIZE);
}

/**
 * Collects the bytes of one part. Its buffer grows with the bytes that arrive, so a slow client holds no
 * more memory than it has sent.
 */
export class PartBuffer {
  readonly #limit: number;
  #buffer: Buffer;
  #used = 0;

  constructor(limit: number, buffer: Buffer) {
    this.#limit = limit;
    this.#buffer = buffer;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#used);
  }

  get isFull(): boolean {
    return this.#used === this.#limit;
  }

  /** Copies what fits of `piece`, from its byte `from`; returns how many bytes. */
  write(piece: Uint8Array, from: number): number {
    const length = Math.min(piece.length - from, this.#limit - this.#used);
    this.#grow(this.#used + length);
    this.#buffer.set(piece.subarray(from, from + length), this.#used);
    this.#used += length;
    return length;
  }

  #grow(needed: number): void {
    if (needed <= this.#buffer.length) return;
    const doubled = Math.max(needed, this.#buffer.length * 2);
    const larger = Buffer.allocUnsafeSlow(Math.min(doubled, this.#limit));
    this.bytes.copy(larger);
    this.#buffer = larger;
  }

  /** The buffer itself, for reuse. */
  release(): Buffer {
    return this.#buffer;
  }
}

/** Gives buffers of parts, and keeps a few for reuse. */
export class PartBuffers {
  readonly #idle: Buffer[] = [];

  /** An empty buffer for part `number`. */
  take(number: number): PartBuffer {
    const limit = partBytes(number);
    const idle = limit === FIRST_PART_BYTES ? this.#idle.pop() : undefined;
    return new PartBuffer(limit, idle ?? Buffer.allocUnsafeSlow(SMALLEST_BYTES));
  }

  /** Takes a buffer back. Only after the request that sends it has ended well, never after a failed one. */
  give(part: PartBuffer): void {
    const buffer = part.release();
    if (buffer.length === FIRST_PART_BYTES && this.#idle.length < MAX_IDLE) this.#idle.push(buffer);
  }
}
