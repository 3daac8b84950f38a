import { crc32 } from 'node:zlib';
import { NightshiftError } from '../../../core/errors';
import {
  checkedEnd,
  frameEnd,
  FRAME_KIND,
  frameKind,
  frameOffset,
  type FrameKind,
} from '../../../core/journal/frame';
import { soundSpan } from '../../../core/journal/frame-span';
import type { MergeMemory } from '../../../core/journal/merge-memory';
import type { ObjectReader, ObjectStore } from '../../object-store';
import type { FrameSource, MergedFrame } from './frame-source';
import type { WindowPool } from './window-pool';

const NOTHING = Buffer.alloc(0);

/** A window that is being read. */
interface Read {
  /** Pooled. */
  readonly buffer: Buffer;
  readonly window: Promise<Buffer>;
}

/** The table of a merge, and the number of the cursor in it. */
export interface CursorPlace {
  readonly memory: MergeMemory;
  readonly cursor: number;
}

/**
 * Walks through the frames of one source, read in windows. The cursor itself is the current frame, so
 * that a merge of millions of frames allocates no object for any of them.
 *
 * Call `load` whenever `isLoaded` is false; it overwrites windows. Before the first `load`, only `offset`
 * is set. `load` checks the checksum of every frame, and that offsets ascend.
 *
 * Where the current frame is lies in the memory of the merge, so that a program can move the cursor too
 * (core/assembly/frame-run.ts). It never moves it beyond the last whole frame of its window.
 */
export class SealCursor implements MergedFrame {
  isLoaded = false;
  /** Whether a window was read, or is being read. */
  isBegun = false;
  window: Buffer = NOTHING;
  /** Number in the table. */
  readonly cursor: number;
  readonly #memory: MergeMemory;
  /** Address of the window in the memory; 0 if it is elsewhere. */
  #base = 0;
  readonly #store: ObjectStore;
  readonly #source: FrameSource;
  readonly #windows: WindowPool;
  #reader: ObjectReader | null = null;
  /** Pooled buffer of the current window. A frame larger than the buffer gets one of its own. */
  #current: Buffer | null = null;
  /** The next window. */
  #ahead: Read | null = null;
  /** Place of the window in its object. */
  #position: number;
  /** End of the last whole frame in the window. */
  #wholeEnd = 0;
  /** Offset of the last frame in the window. */
  #lastOffset = -1;

  constructor(
    { memory, cursor }: CursorPlace,
    store: ObjectStore,
    source: FrameSource,
    windows: WindowPool,
  ) {
    this.#memory = memory;
    this.cursor = cursor;
    this.#store = store;
    this.#source = source;
    this.#windows = windows;
    this.#position = source.start;
    memory.offsets[cursor] = source.firstOffset;
  }

  /** Of the current frame; infinity at the end. */
  get offset(): number {
    return this.#memory.offsets[this.cursor] ?? 0;
  }

  get start(): number {
    return (this.#memory.starts[this.cursor] ?? 0) - this.#base;
  }

  get end(): number {
    return (this.#memory.ends[this.cursor] ?? 0) - this.#base;
  }

  get kind(): FrameKind {
    return frameKind(this.window, this.start);
  }

  get rankKey(): string {
    return this.#source.rankKey;
  }

  get position(): number {
    return this.#position + this.start;
  }

  /** The source from the current frame on. Its first offset may be that of the frame before, until it is loaded. */
  rest(): FrameSource {
    const start = this.isLoaded ? this.position : this.#next;
    return { ...this.#source, start, firstOffset: this.offset };
  }

  /** The merge needs the next window after this offset; infinity if there is none, or it is being read. */
  get nextNeededAt(): number {
    if (this.#ahead !== null || this.#next >= this.#source.end) return Number.POSITIVE_INFINITY;
    return this.isBegun ? this.#lastOffset : this.offset;
  }

  /** Begins to read the next window. An error is thrown by `load`. */
  readAhead(): void {
    this.#ahead = this.#beginRead();
    // A cursor that is closed first never reports it.
    this.#ahead.window.catch(() => undefined);
  }

  /** Reads the window that begins with the next frame. @throws object_corrupt, object_store_failed */
  async load(): Promise<void> {
    const next = this.#next;
    this.#releaseCurrent();
    const read = this.#ahead ?? this.#beginRead();
    this.#ahead = null;
    this.#current = read.buffer;
    let window = await read.window;
    const needed = frameEnd(window, 0);
    if (needed !== null && needed > window.length) {
      window = await this.#read(next, Buffer.allocUnsafeSlow(this.#inside(next, needed)));
    }
    this.#position = next;
    this.window = window;
    this.#wholeEnd = this.#checkFrames(window);
    const isInMemory = window.buffer === this.#memory.buffer;
    this.#base = isInMemory ? window.byteOffset : 0;
    this.#memory.wholeEnds[this.cursor] = isInMemory ? this.#base + this.#wholeEnd : 0;
    this.#goTo(0);
    this.isLoaded = true;
  }

  /**
   * Goes to the next frame. If the window does not contain it, `isLoaded` becomes false and `offset` stays.
   * After the last frame, `offset` is infinity.
   */
  advance(): void {
    if (this.end < this.#wholeEnd) this.#goTo(this.end);
    else if (this.#next < this.#source.end) this.isLoaded = false;
    else this.#memory.offsets[this.cursor] = Number.POSITIVE_INFINITY;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const ahead = this.#ahead;
    this.#ahead = null;
    this.window = NOTHING;
    this.#releaseCurrent();
    if (ahead !== null) {
      await ahead.window.catch(() => undefined);
      this.#windows.release(ahead.buffer);
    }
    const reader = this.#reader;
    this.#reader = null;
    await reader?.close();
  }

  /** Place of the next window. */
  get #next(): number {
    return this.#position + this.#wholeEnd;
  }

  #releaseCurrent(): void {
    if (this.#current !== null) this.#windows.release(this.#current);
    this.#current = null;
  }

  #beginRead(): Read {
    this.isBegun = true;
    const buffer = this.#windows.acquire();
    return { buffer, window: this.#read(this.#next, buffer) };
  }

  /** One at a time. */
  async #read(position: number, into: Buffer): Promise<Buffer> {
    const reader = this.#reader ?? (await this.#open());
    return reader.read(position, this.#inside(position, into.length), into);
  }

  async #open(): Promise<ObjectReader> {
    return (this.#reader = await this.#store.open(this.#source.key));
  }

  #inside(position: number, length: number): number {
    return Math.min(length, this.#source.end - position);
  }

  #goTo(start: number): void {
    const { offsets, starts, ends } = this.#memory;
    starts[this.cursor] = this.#base + start;
    ends[this.cursor] = this.#base + (frameEnd(this.window, start) ?? this.#wholeEnd);
    offsets[this.cursor] = frameOffset(this.window, start);
  }

  /** Checks all whole frames; `load` has read at least the first one whole, unless it is damaged. */
  #checkFrames(window: Buffer): number {
    const span = soundSpan(window, this.#lastOffset, crc32);
    if (span === null) return this.#checkEach(window);
    this.#lastOffset = span.lastOffset;
    return span.end;
  }

  /** The frames before the first damaged one. */
  #checkEach(window: Buffer): number {
    let at = 0;
    for (;;) {
      const end = checkedEnd(window, at, crc32);
      if (end === null) break;
      const offset = frameOffset(window, at);
      if (offset <= this.#lastOffset) throw this.#corrupt('frames are out of order');
      if (frameKind(window, at) === FRAME_KIND.retry) throw this.#corrupt('it has a retry frame');
      this.#lastOffset = offset;
      at = end;
    }
    if (at === 0) throw this.#corrupt('a frame is damaged');
    return at;
  }

  #corrupt(what: string): NightshiftError {
    return new NightshiftError('object_corrupt', `${this.#source.key}: ${what}`);
  }
}
