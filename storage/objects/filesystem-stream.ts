import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Range } from '../../core/range';
import { promised } from '../../core/async/tell';
import { CallbackFile } from './callback-file';
import { asStoreError } from './filesystem-errors';

/** Most files are small, and large new buffers make V8 collect the whole heap every few files. */
const FIRST_CHUNK_BYTES = 64 * 1024;
const STREAM_CHUNK_BYTES = 256 * 1024;
/** To begin a read takes 70 µs, so reads of a file that is scanned are larger, and the largest ones begin with the third. */
const SECOND_LENT_BYTES = 512 * 1024;
const LENT_CHUNK_BYTES = 2 * 1024 * 1024;
/** One that the consumer has, and one that is being filled or waits: nothing is read while a chunk waits. */
const LENT_BUFFERS = 2;

export interface FileStreamOptions {
  readonly range: Range | undefined;
  /**
   * Whether chunks lie in buffers that are used again: a chunk is valid until the consumer asks for the next one, and
   * there must be no stream in between. New buffers for a large file cost a third of the time to scan it.
   */
  readonly lendsChunks?: boolean;
  /** Called with the size of each chunk once it was consumed. */
  readonly onPassed: (bytes: number) => void;
}

/**
 * Streams the bytes of a file in chunks of 256 KiB, lent ones of 2 MiB; only the first ones and the last one are shorter.
 * Errors arrive on the stream: errors of `openFile` unchanged, read errors as `object_store_failed`.
 */
export class FileStream extends Readable {
  readonly #openFile: () => Promise<FileHandle>;
  readonly #end: number;
  readonly #onPassed: (bytes: number) => void;
  readonly #chunkBytes: number;
  readonly #lent: Buffer[] | null;
  #chunks = 0;
  #position: number;
  #isAtEnd = false;
  #file: CallbackFile | null = null;

  constructor(openFile: () => Promise<FileHandle>, options: FileStreamOptions) {
    const { range, onPassed, lendsChunks = false } = options;
    const chunkBytes = lendsChunks ? LENT_CHUNK_BYTES : STREAM_CHUNK_BYTES;
    // A lent chunk is taken by itself: two that wait would be copied to a third buffer.
    super({ highWaterMark: lendsChunks ? 1 : chunkBytes });
    this.#chunkBytes = chunkBytes;
    this.#openFile = openFile;
    this.#onPassed = onPassed;
    this.#lent = lendsChunks ? [] : null;
    this.#position = range?.from ?? 0;
    this.#end = range?.to ?? Number.POSITIVE_INFINITY;
  }

  override _construct(done: (error?: Error | null) => void): void {
    this.#openFile().then(
      (file) => {
        this.#file = new CallbackFile(file);
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
    const length = Math.min(this.#mostBytes(), this.#end - this.#position);
    const file = this.#file;
    if (length <= 0 || this.#isAtEnd || file === null) return null;
    const chunk = this.#nextBuffer(length);
    this.#chunks++;
    const bytesRead = await promised<number>((onRead) => file.read(this.#position, chunk, onRead));
    this.#position += bytesRead;
    this.#isAtEnd = bytesRead < length;
    return bytesRead === 0 ? null : chunk.subarray(0, bytesRead);
  }

  /** How large the next chunk can be. */
  #mostBytes(): number {
    if (this.#chunks === 0) return FIRST_CHUNK_BYTES;
    return this.#chunks === 1 && this.#lent !== null ? SECOND_LENT_BYTES : this.#chunkBytes;
  }

  #nextBuffer(length: number): Buffer {
    if (this.#lent === null || this.#chunks < 2) return Buffer.allocUnsafeSlow(length);
    const place = this.#chunks % LENT_BUFFERS;
    return (this.#lent[place] ??= Buffer.allocUnsafeSlow(this.#chunkBytes)).subarray(0, length);
  }
}
