import { NightshiftError } from '../../core/errors';
import { BodyBuffer } from '../../http/bodies/body-buffer';
import type { BodyPlace } from '../../http/bodies/body-place';
import type { AudioSource } from '../../inference/audio/audio-calls';
import type { Spool, SpoolFile } from './spool';
import type { SpoolPlace } from './spool-room';

/** Bodies up to this length stay in memory. */
const MEMORY_BYTES = 64 * 1024;
/** A body of unknown length reserves so many bytes at a time. */
const STEP_BYTES = 64 * 1024;
/** Largest piece in which a file is read. */
const PIECE_BYTES = 256 * 1024;

/** Where a body goes as it arrives. */
export interface ReceivedBodyOptions {
  readonly spool: Spool;
  /** Counts the bytes that stay in memory; null if they are not counted. */
  readonly memory: BodyPlace | null;
  readonly isSheddable: boolean;
  /** `content-length`; null if the client does not declare it. */
  readonly declaredBytes: number | null;
  /** Called if the file system fails. */
  onSpoolError(error: unknown): void;
}

/**
 * The bytes of one body, in memory or in the spool, which can be read any number of times
 * (docs/design/audio.md#spool).
 */
export class ReceivedBody {
  readonly #options: ReceivedBodyOptions;
  readonly #place: SpoolPlace;
  readonly #buffer: BodyBuffer;
  /** The whole body, if it is in memory and complete. */
  #memory: Buffer | null = null;
  #file: SpoolFile | null = null;
  #size = 0;
  #readers = 0;
  #isReleased = false;
  #isFreed = false;

  constructor(options: ReceivedBodyOptions) {
    const { spool, memory, isSheddable, declaredBytes } = options;
    this.#options = options;
    this.#place = spool.room.place(isSheddable);
    this.#buffer = new BodyBuffer({
      declaredBytes,
      maxBytes: MEMORY_BYTES,
      reserve: (bytes) => memory?.reserve(bytes) ?? true,
    });
  }

  /** Bytes that have arrived. */
  get size(): number {
    return this.#size;
  }

  /** Bytes of it in memory. */
  get memoryBytes(): number {
    return this.#file === null ? this.#size : 0;
  }

  /** Reserves the declared length, before anything is read. @throws unavailable without room */
  reserve(): void {
    const { declaredBytes } = this.#options;
    if (declaredBytes === null || declaredBytes <= MEMORY_BYTES) return;
    if (!this.#place.reserve(declaredBytes)) throw noRoom();
  }

  /** Allows the body to give way to others while it has not been dispatched; null forbids it. */
  evictable(onEvicted: (() => void) | null): void {
    this.#place.evictable(onEvicted);
  }

  /** Adds bytes. The next ones are added when the promise has settled. @throws unavailable without room */
  async append(chunk: Buffer): Promise<void> {
    if (this.#isReleased) throw noRoom();
    const size = this.#size + chunk.length;
    if (this.#file === null && size <= MEMORY_BYTES) {
      if (!this.#buffer.append(chunk)) throw noRoom();
    } else {
      this.#reserveUpTo(size);
      await this.#write(chunk);
    }
    this.#size = size;
  }

  /** No more bytes follow. @throws unavailable if it had to give way */
  finish(): void {
    if (this.#isReleased) throw noRoom();
    if (this.#file === null) this.#memory = this.#buffer.finish();
  }

  /**
   * A part of the complete body. After {@link release}, it reads nothing: a call for several recordings passes over one
   * that was cancelled.
   */
  range(offset: number, length: number): AudioSource {
    return { size: length, read: () => this.#read(offset, length) };
  }

  /** The complete body: its bytes if they are in memory, else where to read them. */
  bytes(): Buffer | AudioSource {
    return this.#memory ?? this.range(0, this.#size);
  }

  /** Some bytes of the complete body; fewer at its end. */
  async readAt(offset: number, length: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    const most = Math.max(0, Math.min(length, this.#size - offset));
    for await (const piece of this.#read(offset, most)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** Gives everything back, after the last read that has begun. It is idempotent. */
  release(): void {
    this.#isReleased = true;
    if (this.#readers === 0) this.#free();
  }

  /** Gives everything back at once: what still reads it fails. It is idempotent. */
  destroy(): void {
    this.#isReleased = true;
    this.#free();
  }

  #free(): void {
    if (this.#isFreed) return;
    this.#isFreed = true;
    this.#memory = null;
    this.#options.memory?.release();
    this.#place.release();
    // A write or read that runs ends first. An error of closing leaves nothing to be done.
    this.#file?.close().catch((error: unknown) => this.#options.onSpoolError(error));
  }

  #reserveUpTo(size: number): void {
    const missing = size - this.#place.held;
    if (missing <= 0) return;
    const steps = Math.ceil(missing / STEP_BYTES) * STEP_BYTES;
    if (!this.#place.reserve(steps)) throw noRoom();
  }

  async #write(chunk: Buffer): Promise<void> {
    try {
      if (this.#file === null) await this.#moveToFile();
      await this.#file?.append(chunk);
    } catch (error) {
      if (!this.#isReleased) this.#options.onSpoolError(error);
      throw noRoom(error);
    }
    if (this.#isReleased) throw noRoom();
  }

  async #moveToFile(): Promise<void> {
    const file = await this.#options.spool.create();
    if (this.#isFreed) {
      await file.close();
      throw noRoom();
    }
    this.#file = file;
    await file.append(this.#buffer.finish());
    this.#options.memory?.release();
  }

  async *#read(offset: number, length: number): AsyncGenerator<Buffer> {
    if (this.#isReleased) return;
    if (this.#memory !== null) {
      if (length > 0) yield this.#memory.subarray(offset, offset + length);
      return;
    }
    this.#readers++;
    try {
      yield* this.#readFile(offset, length);
    } finally {
      this.#readers--;
      if (this.#isReleased && this.#readers === 0) this.#free();
    }
  }

  async *#readFile(offset: number, length: number): AsyncGenerator<Buffer> {
    for (let at = 0; at < length;) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, length - at));
      const bytes = (await this.#file?.read(piece, offset + at)) ?? 0;
      if (bytes === 0) throw new NightshiftError('internal', 'a body in the spool is too short');
      yield piece.subarray(0, bytes);
      at += bytes;
    }
  }
}

function noRoom(cause?: unknown): NightshiftError {
  const message = 'There is no room for the body of the request.';
  return new NightshiftError('unavailable', message, cause === undefined ? {} : { cause });
}
