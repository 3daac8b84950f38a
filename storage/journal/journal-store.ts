import type { FrameHeader, FrameKind } from '../../core/journal/frame';
import type { ManifestSeal } from '../../core/journal/manifest';
import type { Range } from '../../core/range';

/**
 * Keeps answers durably from the request until the result files are made (docs/design/journal.md). A
 * port: the filesystem is its one implementation, and the only code that knows where answers lie.
 *
 * An implementation MUST give every writer segments of its own, which no other process ever writes or
 * changes, and MUST make acknowledged frames survive a kill -9 of this process.
 */
export interface JournalStore {
  /** A writer for a range of one model's plan. Creates no object before its first write. */
  openWriter(scope: JournalScope, range: Range): JournalWriter;

  /**
   * Every frame of all segments and seals that overlap `range`, by any writer. In no particular order,
   * with duplicates, and with frames outside the range. Reading an object stops at the first bad length
   * or CRC. Objects that `isWanted` refuses are not read. @throws object_store_failed
   */
  scan(
    scope: JournalScope,
    range: Range,
    isWanted?: (object: JournalObject) => boolean,
  ): AsyncIterable<FrameRef>;

  /**
   * Writes a seal of `range`, or a rest object, from frames in order of offset, one per offset. Names
   * carry random bits, so no object is ever written twice. @throws object_store_failed
   */
  writeSeal(scope: JournalScope, range: Range | 'rest', frames: SealedFrames): Promise<SealInfo>;

  /** All seals of a batch, in key order. */
  listSeals(batchId: string): Promise<SealInfo[]>;

  /**
   * One answer for each line that the seals of a manifest answer, in order of offset: of several answers
   * to a line always the same one (docs/design/journal.md#duplicate-answers). `check` is called now and
   * then while the stream is prepared, and throws to give up. The caller closes the stream.
   * @throws object_corrupt if the seals are not as the manifest says, object_store_failed
   */
  openAnswers(
    batchId: string,
    seals: readonly ManifestSeal[],
    check: () => void,
  ): Promise<AnswerStream>;
}

/**
 * Answers in order of offset, without a promise for each: millions of them are merged at the speed of
 * the disk. Take `next` until it returns null, then `load`, until that returns false.
 */
export interface AnswerStream {
  /** The next answer, valid until the next call; null if `load` must be called first. */
  next(): ChosenAnswer | null;
  /** Reads on; false at the end. @throws object_corrupt, object_store_failed */
  load(): Promise<boolean>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** The answer to one line. */
export interface ChosenAnswer {
  /** Of the line in the input. */
  readonly offset: number;
  readonly kind: FrameKind;
  /** The frame, header included, is `window[start, end)`. */
  readonly window: Buffer;
  readonly start: number;
  readonly end: number;
}

/** One model of one batch. */
export interface JournalScope {
  readonly batchId: string;
  /** The model's name as a segment of object names. */
  readonly safeModel: string;
}

/** A segment or seal, before it is read. */
export interface JournalObject {
  readonly key: string;
  /** Plan positions that its name says it covers; null for a rest object. */
  readonly range: Range | null;
}

/** Where one whole frame lies; `byteLength` includes its header. */
export interface FrameRef {
  readonly header: FrameHeader;
  readonly objectKey: string;
  readonly position: number;
  readonly byteLength: number;
  /** Of a retry frame only: the request is not sent again before this time. */
  readonly notBeforeMs?: number;
}

/** What a seal needs to know of a frame. */
export interface SealedFrame extends Pick<FrameRef, 'objectKey' | 'position' | 'byteLength'> {
  readonly header: Pick<FrameHeader, 'offset' | 'kind'>;
}

/** Frames that can be iterated more than once: an array, or a table that creates them on the way. */
export interface SealedFrames extends Iterable<SealedFrame> {
  readonly length: number;
}

/** A seal or rest object of a listing; `size` in bytes. */
export interface SealInfo {
  readonly key: string;
  readonly size: number;
  readonly safeModel: string;
  /** Null for a rest object. */
  readonly range: Range | null;
}

/** Writes the answers of one attempt at a chunk, into segments of its own. */
export interface JournalWriter {
  /**
   * Buffers one encoded frame. The writer's own timer (about 50 ms) or `flush` writes it; from then
   * on it survives kill -9 and appears in `frames`.
   */
  append(header: FrameHeader, encodedFrame: Uint8Array): void;

  /** Bytes appended and not yet written: back-pressure for the caller. */
  readonly unwrittenBytes: number;

  /**
   * False from a failed write until a new segment holds all unwritten frames. The caller sends no
   * requests meanwhile.
   */
  readonly healthy: boolean;

  /** Frames written so far, in order of writing. */
  readonly frames: readonly FrameRef[];

  /** Resolves when all frames appended so far are written. Retries until then, or until `signal` aborts. */
  flush(signal?: AbortSignal): Promise<void>;

  /**
   * Tries once to write the unwritten frames, and closes. Idempotent. Call `flush` first to wait for a
   * disk that is full. @throws object_store_failed if frames could not be written and are lost
   */
  close(): Promise<void>;
}
