import { NightshiftError } from '../../core/errors';
import { FRAME_HEADER_BYTES, FRAME_KIND, readNotBeforeMs } from '../../core/journal/frame';
import type { FrameHeader } from '../../core/journal/frame';
import type { Range } from '../../core/range';
import type { FrameRef, JournalScope, JournalWriter } from './journal-store';

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 2_000;

/** When a writer writes. */
export interface WritePolicy {
  /**
   * Longest time that a frame waits for the start of its write, unless the write before it takes longer. A
   * kill -9 loses at most the frames of this time, and those of the write that runs.
   */
  readonly intervalMs: number;
  /** Frames of this many bytes do not wait for the interval. */
  readonly soonBytes: number;
  /** Most bytes of frames in one write; a larger frame is written alone. */
  readonly maxBytes: number;
}

/** What the names of a writer's segments are made from. */
export interface SegmentScope extends JournalScope {
  readonly range: Range;
}

/** Where the first of the written frames is; the others follow it. */
export interface WrittenPlace {
  readonly objectKey: string;
  readonly position: number;
}

/** The segments of one writer. Calls never overlap. */
export interface SegmentSink {
  /**
   * Writes all frames behind each other into one segment. After an error none of them is acknowledged, and
   * the next call has the same frames.
   */
  write(frames: readonly Uint8Array[]): Promise<WrittenPlace>;
  /** Called once, after the last write. */
  close(): Promise<void>;
}

interface Appended {
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
  /** When it was appended, on the monotonic clock. */
  readonly atMs: number;
}

interface Waiter {
  /** Number of written frames that it waits for. */
  readonly target: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Buffers the frames of one attempt at a chunk and writes them to its segments
 * (docs/design/journal.md#writing-and-durability).
 *
 * | state   | meaning                                    | transitions                              |
 * |---------|--------------------------------------------|------------------------------------------|
 * | idle    | nothing to write, or the timer is running  | timer, size, flush, close → writing      |
 * | writing | one write runs, further frames queue up    | success → idle; failure → failed         |
 * | failed  | unhealthy: frames are kept                 | retry of the same frames → writing; close |
 * | closed  | appends throw                              | –                                        |
 */
export class SegmentWriter implements JournalWriter {
  readonly #sink: SegmentSink;
  readonly #policy: WritePolicy;
  readonly #frames: FrameRef[] = [];
  #queue: Appended[] = [];
  /** How many frames at the head of the queue belong to the write that runs or is retried; 0 if none. */
  #claimed = 0;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;
  #waiters: Waiter[] = [];
  #unwrittenBytes = 0;
  #failures = 0;
  #lastError: unknown = null;
  #closing: Promise<void> | null = null;

  constructor(sink: SegmentSink, policy: WritePolicy) {
    this.#sink = sink;
    this.#policy = policy;
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
    this.#queue.push({ header, bytes: encodedFrame, atMs: performance.now() });
    this.#unwrittenBytes += encodedFrame.length;
    this.#schedule();
  }

  async flush(): Promise<void> {
    const target = this.#appendedFrames();
    if (this.#frames.length >= target) return;
    // The close writes what is left. A write of its own would run at the same time, with the same frames.
    if (this.#closing !== null) return this.#closing;
    await new Promise<void>((resolve, reject) => {
      this.#waiters.push({ target, resolve, reject });
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

  /** A flush starts a write at once, even if the timer is running. */
  #schedule(): void {
    const oldest = this.#queue[0];
    if (this.#writing !== null || oldest === undefined) return;
    const isUrgent = this.#waiters.length > 0 || this.#unwrittenBytes >= this.#policy.soonBytes;
    if (!this.healthy) this.#timer ??= setTimeout(() => this.#start(), this.#retryMs());
    else if (isUrgent) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), this.#waitMs(oldest.atMs));
  }

  #waitMs(oldestMs: number): number {
    return Math.max(0, oldestMs + this.#policy.intervalMs - performance.now());
  }

  #retryMs(): number {
    return Math.min(RETRY_FIRST_MS * 2 ** (this.#failures - 1), RETRY_MAX_MS);
  }

  #start(): void {
    this.#stopTimer();
    this.#writing = this.#writeOnce().then(() => {
      this.#writing = null;
      if (this.#closing === null) this.#schedule();
    });
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Tries once to write the head of the queue: what failed before, or as much as one write takes. */
  async #writeOnce(): Promise<boolean> {
    if (this.#claimed === 0) this.#claimed = this.#fittingFrames();
    const batch = this.#queue.slice(0, this.#claimed);
    try {
      const place = await this.#sink.write(batch.map((frame) => frame.bytes));
      this.#acknowledge(batch, place);
      return true;
    } catch (error) {
      this.#failures++;
      this.#lastError = error;
      return false;
    }
  }

  /** How many frames of the queue fit into one write; at least one. */
  #fittingFrames(): number {
    let bytes = 0;
    let count = 0;
    for (const frame of this.#queue) {
      bytes += frame.bytes.length;
      if (count > 0 && bytes > this.#policy.maxBytes) break;
      count++;
    }
    return count;
  }

  #acknowledge(batch: readonly Appended[], { objectKey, position: first }: WrittenPlace): void {
    let position = first;
    for (const { header, bytes } of batch) {
      const ref = { header, objectKey, position, byteLength: bytes.length };
      const notBeforeMs = notBefore(header, bytes);
      this.#frames.push(notBeforeMs === null ? ref : { ...ref, notBeforeMs });
      this.#unwrittenBytes -= bytes.length;
      position += bytes.length;
    }
    this.#queue = this.#queue.slice(batch.length);
    this.#claimed = 0;
    this.#failures = 0;
    const done = this.#waiters.filter((waiter) => waiter.target <= this.#frames.length);
    this.#waiters = this.#waiters.filter((waiter) => waiter.target > this.#frames.length);
    for (const waiter of done) waiter.resolve();
  }

  async #finish(): Promise<void> {
    this.#stopTimer();
    await this.#writing;
    while (this.#queue.length > 0 && (await this.#writeOnce()));
    await this.#sink.close();
    if (this.#queue.length === 0) return;
    const message = `journal: ${this.#queue.length} frames could not be written`;
    const error = new NightshiftError('object_store_failed', message, { cause: this.#lastError });
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
    throw error;
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
