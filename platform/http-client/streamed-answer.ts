import { Readable } from 'node:stream';
import type { HttpAttempt } from './attempt';
import { createContentDecoder, type ContentDecoder } from './content-decoder';
import type { HeaderFields } from './header-fields';

/** Bytes that are held for a consumer before reading stops. */
const HIGH_WATER_BYTES = 256 * 1024;

/** The final response of a request, whose body is read as it arrives. */
export interface OutboundAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** The value of one field, or null. `name` is lower-case. */
  header(name: string): string | null;
  /**
   * The decoded body. It must be read to its end or destroyed, else its connection stays open until the time
   * limit. A failure destroys it with an error.
   */
  readonly body: Readable;
}

/** The body of one response on its way to a consumer: decodes it, limits it, and applies back-pressure. */
export class StreamedAnswer {
  readonly body: Readable;
  readonly #attempt: HttpAttempt;
  readonly #maxBytes: number;
  #decoder: ContentDecoder | null = null;
  #bytes = 0;
  #isHeld = false;
  #isDecoderFull = false;

  constructor(attempt: HttpAttempt, maxBytes: number) {
    this.#attempt = attempt;
    this.#maxBytes = maxBytes;
    this.body = new Readable({
      highWaterMark: HIGH_WATER_BYTES,
      read: () => this.#release(),
      destroy: (error, callback) => {
        this.#decoder?.destroy();
        attempt.abort();
        callback(error);
      },
    });
    // An error is reported by the call. Without a listener, one that nobody reads would end the process.
    this.body.on('error', () => undefined);
  }

  /** Whether the consumer takes no more bytes for now. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** The response has begun. */
  start(status: number, fields: HeaderFields): OutboundAnswer {
    const length = fields.first('content-length');
    if (length !== null && Number(length) > this.#maxBytes) this.#failTooLarge();
    const encoding = fields.first('content-encoding');
    if (encoding !== null) this.#decoder = this.#createDecoder(encoding);
    const header = (name: string): string | null => fields.first(name);
    return { kind: 'answer', status, header, body: this.body };
  }

  /** Bytes have arrived. */
  write(chunk: Buffer): void {
    if (this.#decoder === null) this.#push(chunk);
    else if (!this.#decoder.write(chunk)) {
      this.#isDecoderFull = true;
      this.#attempt.hold();
    }
  }

  /** The last byte has arrived. */
  end(): void {
    if (this.#decoder === null) this.#finish();
    else this.#decoder.end();
  }

  #createDecoder(encoding: string): ContentDecoder | null {
    const sink = {
      onBytes: (chunk: Buffer) => this.#push(chunk),
      onEnd: () => this.#finish(),
      onBroken: (error: Error) =>
        this.#attempt.fail(
          'connection',
          `the content coding of the response is broken: ${error.message}`,
        ),
      onTooLarge: () => this.#failTooLarge(),
    };
    const onDrain = (): void => {
      if (!this.#isDecoderFull) return;
      this.#isDecoderFull = false;
      this.#attempt.release();
    };
    return createContentDecoder(encoding, sink, { maxBytes: this.#maxBytes, onDrain });
  }

  #push(chunk: Buffer): void {
    if (this.#attempt.isOver) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) return this.#failTooLarge();
    if (this.body.push(chunk) || this.#isHeld) return;
    this.#isHeld = true;
    if (this.#decoder === null) this.#attempt.hold();
    else this.#decoder.pause();
  }

  #release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    if (this.#decoder === null) this.#attempt.release();
    else this.#decoder.resume();
  }

  #finish(): void {
    if (this.#attempt.isOver) return;
    this.#attempt.finish();
    this.body.push(null);
  }

  #failTooLarge(): void {
    this.#attempt.fail('too_large', `the response is larger than ${this.#maxBytes} bytes`);
  }
}
