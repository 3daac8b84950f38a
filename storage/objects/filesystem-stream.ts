import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Range } from '../../core/range';
import { asStoreError } from './filesystem-errors';

const STREAM_CHUNK_BYTES = 256 * 1024;

export interface FileStreamOptions {
  readonly range: Range | undefined;
  /** Called with the size of each chunk once it was consumed. */
  readonly onPassed: (bytes: number) => void;
}

/**
 * Streams the bytes of a file in fresh chunks of 256 KiB. Errors arrive on the stream: errors of `openFile`
 * unchanged, read errors as `object_store_failed`.
 */
export class FileStream extends Readable {
  readonly #openFile: () => Promise<FileHandle>;
  readonly #end: number;
  readonly #onPassed: (bytes: number) => void;
  #position: number;
  #file: FileHandle | null = null;

  constructor(openFile: () => Promise<FileHandle>, { range, onPassed }: FileStreamOptions) {
    super({ highWaterMark: STREAM_CHUNK_BYTES });
    this.#openFile = openFile;
    this.#onPassed = onPassed;
    this.#position = range?.from ?? 0;
    this.#end = range?.to ?? Number.POSITIVE_INFINITY;
  }

  override _construct(done: (error?: Error | null) => void): void {
    this.#openFile().then(
      (file) => {
        this.#file = file;
        done();
      },
      (error: Error) => done(error),
    );
  }

  override _read(): void {
    this.#readChunk().then(
      (chunk) => {
        // The consumer asked for more, so it has released the previous chunk, of about the same size.
        this.#onPassed(chunk?.length ?? 0);
        this.push(chunk);
      },
      (error: unknown) => this.destroy(asStoreError(error, 'stream')),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const closed = this.#file?.close() ?? Promise.resolve();
    closed.then(
      () => done(error),
      () => done(error),
    );
  }

  async #readChunk(): Promise<Buffer | null> {
    const length = Math.min(STREAM_CHUNK_BYTES, this.#end - this.#position);
    if (length <= 0 || this.#file === null) return null;
    const buffer = Buffer.allocUnsafeSlow(length);
    const { bytesRead } = await this.#file.read(buffer, 0, length, this.#position);
    this.#position += bytesRead;
    return bytesRead === 0 ? null : buffer.subarray(0, bytesRead);
  }
}
