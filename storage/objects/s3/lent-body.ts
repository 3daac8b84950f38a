import { Readable } from 'node:stream';
import type { HttpAttempt } from '../../../platform/http-client/attempt';
import { StallTimer } from '../../../platform/http-client/stall-timer';
import type { SpareBuffers } from '../spare-buffers';

/** How much is held for a consumer, and more. */
export const BODY_BUFFER_BYTES = 256 * 1024;
/** A shorter body gets a buffer of its length. */
const SHORT_BYTES = 64 * 1024;
/** A connection reads 64 KiB at once, so the last of them still fit into a buffer. */
const HOLD_BYTES = 192 * 1024;

/** What a body needs. */
export interface LentBodyOptions {
  /** Gets the bytes from its connection. */
  readonly attempt: HttpAttempt;
  /** Of {@link BODY_BUFFER_BYTES}. */
  readonly buffers: SpareBuffers;
  /** Length of the body; null if the head does not tell it. */
  readonly bytes: number | null;
  /** Longest pause while a consumer waits, ms. */
  readonly timeoutMs: number;
}

/**
 * The body of an answer, for a consumer that pulls it with {@link pull}: bytes are copied into one of two buffers, and the
 * other one is with the consumer. As a stream, it gives copies: the SDK reads errors and lists so. Use one way or the other.
 */
export class LentBody extends Readable {
  readonly #o: LentBodyOptions;
  readonly #stall: StallTimer;
  #filling: Buffer | null = null;
  /** Bytes in it. */
  #filled = 0;
  #lent: Buffer | null = null;
  #isHeld = false;
  #isWhole = false;
  #failure: Error | null = null;
  #onChange: () => void = () => undefined;

  constructor(options: LentBodyOptions) {
    super({ highWaterMark: SHORT_BYTES });
    this.#o = options;
    const { timeoutMs } = options;
    this.#stall = new StallTimer(timeoutMs, () =>
      this.destroy(new Error(`no byte for ${timeoutMs / 1_000} s`)),
    );
  }

  /** Copies bytes that have arrived. */
  add(piece: Buffer): void {
    if (this.#failure !== null) return;
    const target = this.#withRoomFor(piece.length);
    piece.copy(target, this.#filled);
    this.#filled += piece.length;
    if (this.#filled >= HOLD_BYTES && !this.#isHeld) {
      this.#isHeld = true;
      this.#o.attempt.hold();
    }
    this.#onChange();
  }

  /** The last byte has arrived. */
  finish(): void {
    this.#isWhole = true;
    this.#onChange();
  }

  /** No more bytes arrive. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#onChange();
  }

  /**
   * What has arrived, valid until the next call; null at the end. Not for concurrent calls. Rejects with the failure of the
   * request, after the bytes that came before it, and when the body is destroyed.
   */
  async pull(): Promise<Buffer | null> {
    if (this.#lent !== null) this.#o.buffers.giveBack(this.#lent);
    this.#lent = null;
    while (this.#filled === 0) {
      if (this.#failure !== null) throw this.#failure;
      if (this.#isWhole) return null;
      await this.#change();
    }
    return this.#lend();
  }

  override _read(): void {
    this.pull().then(
      (bytes) => this.push(bytes === null ? null : Buffer.from(bytes)),
      (error: Error) => this.destroy(error),
    );
  }

  /** A consumer may still look at the bytes that it has, so their buffer is not used again. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#filled = 0;
    this.fail(error ?? new Error('the body was given up'));
    this.#o.attempt.abort();
    done(error);
  }

  async #change(): Promise<void> {
    this.#stall.start();
    await new Promise<void>((resolve) => (this.#onChange = resolve));
    this.#stall.stop();
  }

  #lend(): Buffer | null {
    const lent = this.#filling?.subarray(0, this.#filled) ?? null;
    this.#lent = this.#filling;
    this.#filling = null;
    this.#filled = 0;
    if (this.#isHeld) {
      this.#isHeld = false;
      this.#o.attempt.release();
    }
    return lent;
  }

  #withRoomFor(bytes: number): Buffer {
    const filling = (this.#filling ??= this.#newBuffer());
    const length = this.#filled + bytes;
    if (length <= filling.length) return filling;
    // TLS hands over what it has read, also after it was told to stop.
    const larger = Buffer.allocUnsafeSlow(2 * length);
    filling.copy(larger, 0, 0, this.#filled);
    this.#filling = larger;
    this.#o.buffers.giveBack(filling);
    return larger;
  }

  #newBuffer(): Buffer {
    const { bytes, buffers } = this.#o;
    return bytes !== null && bytes <= SHORT_BYTES ? Buffer.allocUnsafe(bytes) : buffers.take();
  }
}
