import { randomBytes } from 'node:crypto';
import { NightshiftError } from '../../core/errors';
import { FRAME_HEADER_BYTES, FRAME_KIND, readNotBeforeMs } from '../../core/journal/frame';
import type { FrameHeader } from '../../core/journal/frame';
import { segmentKey } from '../../core/names/object-names';
import type { Range } from '../../core/range';
import type { FrameRef, JournalScope, JournalWriter } from './journal-store';
import type { SegmentFile } from './segment-file';

/** A kill -9 loses at most the frames appended in this time (measured: 49 ms at 500 lines a second). */
const WRITE_INTERVAL_MS = 50;
/** A write of this size does not wait for the interval; larger writes are no faster (measured). */
const WRITE_SOON_BYTES = 256 * 1024;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 2_000;

export interface FilesystemWriterOptions {
  readonly scope: JournalScope;
  readonly range: Range;
  /** Creates the segment `key`; `onSyncError` makes the writer abandon it. */
  readonly createSegment: (
    key: string,
    onSyncError: (error: unknown) => void,
  ) => Promise<SegmentFile>;
  readonly onAbandoned: (segment: string, error: unknown) => void;
}

interface Appended {
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
}

interface Waiter {
  /** Number of written frames that it waits for. */
  readonly target: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes the segments of one attempt at a chunk (docs/design/journal.md#writing-and-durability).
 *
 * | state   | meaning                                    | transitions                              |
 * |---------|--------------------------------------------|------------------------------------------|
 * | idle    | nothing to write, or the timer is running  | timer, size, flush, close → writing      |
 * | writing | one write runs, further frames queue up    | success → idle; failure → failed         |
 * | failed  | unhealthy: segment abandoned, frames kept  | retry in a new segment → writing; close  |
 * | closed  | appends throw                              | –                                        |
 */
export class FilesystemWriter implements JournalWriter {
  readonly #options: FilesystemWriterOptions;
  readonly #frames: FrameRef[] = [];
  #queue: Appended[] = [];
  #segment: SegmentFile | null = null;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;
  #waiters: Waiter[] = [];
  #unwrittenBytes = 0;
  #failures = 0;
  #lastError: unknown = null;
  #closing: Promise<void> | null = null;

  constructor(options: FilesystemWriterOptions) {
    this.#options = options;
  }

  get unwrittenBytes(): number {
    return this.#unwrittenBytes;
  }

  get healthy(): boolean {
    return this.#failures === 0;
  }

  get frames(): readonly FrameRef[] {
    return this.#frames;
  }

  append(header: FrameHeader, encodedFrame: Uint8Array): void {
    if (this.#closing !== null)
      throw new NightshiftError('internal', 'append to a closed journal writer');
    this.#queue.push({ header, bytes: encodedFrame });
    this.#unwrittenBytes += encodedFrame.length;
    this.#schedule();
  }

  async flush(signal?: AbortSignal): Promise<void> {
    const target = this.#appendedFrames();
    if (this.#frames.length >= target) return;
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const waiter = { target, resolve, reject };
      this.#waiters.push(waiter);
      signal?.addEventListener('abort', () => this.#dismiss(waiter, signal.reason), { once: true });
      this.#schedule();
    });
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#finish());
  }

  /** Frames leave the queue only when they are written, so each is counted once. */
  #appendedFrames(): number {
    return this.#frames.length + this.#queue.length;
  }

  #schedule(): void {
    if (this.#writing !== null || this.#queue.length === 0) return;
    const isUrgent = this.#waiters.length > 0 || this.#unwrittenBytes >= WRITE_SOON_BYTES;
    const waitMs = this.healthy ? (isUrgent ? 0 : WRITE_INTERVAL_MS) : this.#retryMs();
    if (waitMs === 0) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), waitMs);
  }

  #retryMs(): number {
    return Math.min(RETRY_FIRST_MS * 2 ** (this.#failures - 1), RETRY_MAX_MS);
  }

  #start(): void {
    this.#stopTimer();
    this.#writing = this.#writeQueue().finally(() => {
      this.#writing = null;
      if (this.#closing === null) this.#schedule();
    });
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Tries once to write the whole queue. */
  async #writeQueue(): Promise<void> {
    const batch = [...this.#queue];
    if (batch.length === 0) return;
    try {
      this.#segment ??= await this.#createSegment();
      const segment = this.#segment;
      const position = await segment.append(batch.map((frame) => frame.bytes));
      this.#acknowledge(batch, segment.key, position);
    } catch (error) {
      this.#failures++;
      this.#lastError = error;
      this.#abandon(this.#segment, error);
    }
  }

  #createSegment(): Promise<SegmentFile> {
    const { scope, range } = this.#options;
    const r = randomBytes(8).toString('hex');
    const key = segmentKey(scope.batchId, scope.safeModel, range, r);
    return this.#options.createSegment(key, (error) => {
      if (this.#segment?.key === key) this.#abandon(this.#segment, error);
    });
  }

  #acknowledge(batch: readonly Appended[], objectKey: string, first: number): void {
    let position = first;
    for (const { header, bytes } of batch) {
      const ref = { header, objectKey, position, byteLength: bytes.length };
      const notBeforeMs = notBefore(header, bytes);
      this.#frames.push(notBeforeMs === null ? ref : { ...ref, notBeforeMs });
      this.#unwrittenBytes -= bytes.length;
      position += bytes.length;
    }
    this.#queue = this.#queue.slice(batch.length);
    this.#failures = 0;
    const done = this.#waiters.filter((waiter) => waiter.target <= this.#frames.length);
    this.#waiters = this.#waiters.filter((waiter) => waiter.target > this.#frames.length);
    for (const waiter of done) waiter.resolve();
  }

  /** The next write creates a new segment. Frames written to the old one stay valid. */
  #abandon(segment: SegmentFile | null, error: unknown): void {
    this.#segment = null;
    this.#options.onAbandoned(segment?.key ?? 'none yet', error);
    void segment?.release();
  }

  async #finish(): Promise<void> {
    this.#stopTimer();
    await this.#writing;
    await this.#writeQueue();
    await this.#segment?.release();
    this.#segment = null;
    if (this.#queue.length === 0) return;
    const message = `journal: ${this.#queue.length} frames could not be written`;
    const error = new NightshiftError('object_store_failed', message, { cause: this.#lastError });
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
    throw error;
  }

  #dismiss(waiter: Waiter, reason: unknown): void {
    this.#waiters = this.#waiters.filter((other) => other !== waiter);
    waiter.reject(reason);
  }
}

function notBefore(header: FrameHeader, bytes: Uint8Array): number | null {
  if (header.kind !== FRAME_KIND.retry) return null;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return readNotBeforeMs(buffer, {
    header,
    payloadStart: FRAME_HEADER_BYTES,
    end: bytes.byteLength,
  });
}
