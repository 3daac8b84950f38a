import type { FrameHeader } from '../../core/journal/frame';
import type { Range } from '../../core/range';

/**
 * The durable memory of answers between a request and the result files (execution §2).
 *
 * An implementation MUST give every writer a segment of its own that nobody else ever writes or
 * changes, and MUST make acknowledged frames survive a kill -9 of this process.
 */
export interface JournalStore {
  /** A writer for the plan positions `[from, to)` of one model. Creates nothing before its first write. */
  openWriter(scope: JournalScope, range: Range): JournalWriter;

  /**
   * Every frame of segments and seals that overlap `range`, whoever wrote them, in no particular
   * order, with duplicates, and with frames outside the range; stops in each object at the first bad
   * length or CRC. Objects that `isWanted` refuses are not read. @throws object_store_failed
   */
  scan(
    scope: JournalScope,
    range: Range,
    isWanted?: (object: JournalObject) => boolean,
  ): AsyncIterable<FrameRef>;

  /**
   * Writes a seal of `range`, or the one `rest` object, from frames given in order of offset, one per
   * offset. An object of this name is never written twice; names carry random bits.
   */
  writeSeal(scope: JournalScope, range: Range | 'rest', frames: SealedFrames): Promise<SealInfo>;

  /** All seals of a batch, in key order. */
  listSeals(batchId: string): Promise<SealInfo[]>;
}

/** One model of one batch: what a journal is kept for. */
export interface JournalScope {
  readonly batchId: string;
  /** Safe model name: a path segment. */
  readonly safeModel: string;
}

/** A segment or seal, before it is read. */
export interface JournalObject {
  readonly key: string;
  /** Of the positions in it, by its name; null for a `rest` object. */
  readonly range: Range | null;
}

/** Where one whole frame lies: `byteLength` counts its header too. */
export interface FrameRef {
  readonly header: FrameHeader;
  readonly objectKey: string;
  readonly position: number;
  readonly byteLength: number;
  /** Only of a retry frame: not to be sent again before this time. */
  readonly notBeforeMs?: number;
}

/** What a seal needs to know of a frame. */
export interface SealedFrame extends Pick<FrameRef, 'objectKey' | 'position' | 'byteLength'> {
  readonly header: Pick<FrameHeader, 'offset' | 'kind'>;
}

/** Frames that can be walked more than once: an array, or what makes them as it is walked. */
export interface SealedFrames extends Iterable<SealedFrame> {
  readonly length: number;
}

/** A seal or rest object as a listing shows it; `size` in bytes. */
export interface SealInfo {
  readonly key: string;
  readonly size: number;
  readonly safeModel: string;
  /** Null for the `rest` object. */
  readonly range: Range | null;
}

/** One attempt's way into the journal; nobody else writes its segments. */
export interface JournalWriter {
  /**
   * Buffers one encoded frame. The writer's own timer (about 50 ms) or `flush` writes it; from then
   * on it survives kill -9 and appears in `frames`.
   */
  append(header: FrameHeader, encodedFrame: Uint8Array): void;

  /** Bytes appended and not yet written: the caller's back-pressure. */
  readonly unwrittenBytes: number;

  /**
   * False from a failed write until a new segment has taken all unwritten frames: meanwhile the
   * caller sends nothing.
   */
  readonly healthy: boolean;

  /** Frames written so far, in order of writing. */
  readonly frames: readonly FrameRef[];

  /** Resolves when all frames appended so far are written. Retries until it works or `signal` aborts. */
  flush(signal?: AbortSignal): Promise<void>;

  /**
   * Writes what is left, in one try, and closes. Idempotent. `flush` before it to wait for a full
   * disk. @throws object_store_failed where frames could not be written and are lost
   */
  close(): Promise<void>;
}
