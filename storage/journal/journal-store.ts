import type { FrameHeader, FrameKind } from '../../core/journal/frame';
import type { ManifestSeal } from '../../core/journal/manifest';
import type { RunTotals } from '../../core/journal/merge-memory';
import type { Range } from '../../core/range';

/**
 * Stores answers durably until the result files are made (docs/design/journal.md). Implementations are the
 * only code that knows where answers are stored.
 *
 * An implementation MUST give every writer segments of its own, which no other process ever writes or
 * changes, and MUST make acknowledged frames survive a kill -9 of this process.
 */
export interface JournalStore {
  /** A writer for a range of one model's plan. Creates no object before its first write. */
  openWriter(scope: JournalScope, range: Range): JournalWriter;

  /**
   * Every frame of all segments and seals that overlap `range`, by any writer. Frames of one writer come in
   * the order of writing, apart from that in no particular order, with duplicates, and with frames outside
   * the range. Reading an object stops at the first bad length
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
   * One answer for each line that has answers in the seals of a manifest, in order of offset. If a line has
   * several answers, the choice is always the same (docs/design/journal.md#duplicate-answers). `check` is
   * called repeatedly while the stream is prepared, and throws to abort. The caller closes the stream.
   * @throws object_corrupt if a seal is missing, damaged, or not of the manifest's size, object_store_failed
   */
  openAnswers(
    batchId: string,
    seals: readonly ManifestSeal[],
    check: () => void,
  ): Promise<SealedAnswers>;
}

/**
 * Answers in order of offset. Millions of them are merged, so `next` is synchronous. Call `next` until it
 * returns null, then `load`, and repeat until `load` returns false.
 */
export interface AnswerStream {
  /** The next answer, valid until the next call; null if `load` must be called first. */
  next(): ChosenAnswer | null;
  /**
   * Copies the lines of the next answers into `into`, each with a newline, and returns how many bytes
   * (docs/design/journal.md#runs-of-frames). Stops before an answer of offset `limit` or more, one that names another model than
   * `tag`, and whatever is not usual; `next` returns that one. `into` must be of {@link lineMemory}; nothing is copied to other
   * memory.
   */
  copyLines(limit: number, tag: number, into: Buffer): number;
  /** Memory for `copyLines`; null if it never copies. */
  readonly lineMemory: Buffer | null;
  /** All that was copied so far. */
  copied(): RunTotals;
  /** Reads the next answers; false at the end. @throws object_corrupt, object_store_failed */
  load(): Promise<boolean>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** The answers in seals that may become more. */
export interface SealedAnswers extends AnswerStream {
  /**
   * Closes this stream, and opens one of the answers that it has not given, and of those in further seals. The answer
   * that `next` has returned last counts as not given. `lineMemory` of this stream stays valid until the new one is
   * closed, and `copied` of the new one begins at 0. It may copy nothing. If it fails, both are closed.
   * @throws object_corrupt, object_store_failed
   */
  continueWith(seals: readonly ManifestSeal[], check: () => void): Promise<SealedAnswers>;
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
  /** The model's name, made fit for object names. */
  readonly safeModel: string;
}

/** A segment or seal, before it is read. */
export interface JournalObject {
  readonly key: string;
  /** Plan positions in its name; null for a rest object. */
  readonly range: Range | null;
}

/** The place of one whole frame; `byteLength` includes its header. */
export interface FrameRef {
  readonly header: FrameHeader;
  readonly objectKey: string;
  readonly position: number;
  readonly byteLength: number;
  /** Of a retry frame only: the request is not sent again before this time. */
  readonly notBeforeMs?: number;
}

/** The fields of a frame that are needed to copy it into a seal. */
export interface SealedFrame extends Pick<FrameRef, 'objectKey' | 'position' | 'byteLength'> {
  readonly header: Pick<FrameHeader, 'offset' | 'kind'>;
}

/** Frames that can be iterated more than once: an array, or an object that creates them when iterated. */
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
   * Buffers one encoded frame. The writer's own timer (50 ms on a filesystem, 1 s on an object store) or
   * `flush` writes it; from then on it survives kill -9 and appears in `frames`.
   */
  append(header: FrameHeader, encodedFrame: Uint8Array): void;

  /** Bytes appended and not yet written: back-pressure for the caller. */
  readonly unwrittenBytes: number;

  /**
   * False from a failed write until its frames are written. The caller sends no requests meanwhile.
   */
  readonly healthy: boolean;

  /** Frames written so far, in order of writing. */
  readonly frames: readonly FrameRef[];

  /**
   * Resolves when all frames appended so far are written. Retries until then. After `close` it waits for the
   * close, and fails like it.
   */
  flush(): Promise<void>;

  /**
   * Writes the unwritten frames until a write fails, and closes. Idempotent. Call `flush` first to wait for
   * a disk that is full. @throws object_store_failed if frames could not be written and are lost
   */
  close(): Promise<void>;
}
