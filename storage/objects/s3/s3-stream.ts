import { Readable } from 'node:stream';
import type { ObjectBytes } from './object-bytes';

const HIGH_WATER_BYTES = 256 * 1024;
/** How long a consumer may pause before its connection is given back. */
const PAUSE_MS = 10_000;

/**
 * Streams the bytes of an object. Errors arrive on the stream. A consumer that pauses, such as the download
 * of a slow client, does not keep a connection: the stream opens another one later.
 */
export class S3Stream extends Readable {
  readonly #bytes: ObjectBytes;
  readonly #onPassed: (bytes: number) => void;
  readonly #pauseMs: number;
  #pause: NodeJS.Timeout | undefined;

  constructor(bytes: ObjectBytes, onPassed: (bytes: number) => void, pauseMs = PAUSE_MS) {
    super({ highWaterMark: HIGH_WATER_BYTES });
    this.#bytes = bytes;
    this.#onPassed = onPassed;
    this.#pauseMs = pauseMs;
  }

  override _read(): void {
    clearTimeout(this.#pause);
    this.#bytes.next().then(
      (chunk) => this.#give(chunk),
      (error: Error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#pause);
    this.#bytes.close();
    done(error);
  }

  #give(chunk: Buffer | null): void {
    // The consumer asked for more, so it has released earlier chunks of about this size.
    this.#onPassed(chunk?.length ?? 0);
    const wantsMore = this.push(chunk === null ? null : Buffer.from(chunk));
    if (wantsMore || chunk === null || this.destroyed) return;
    this.#pause = setTimeout(() => this.#bytes.release(), this.#pauseMs).unref();
  }
}
