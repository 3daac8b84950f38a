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
import type { ObjectReader, ObjectStore } from '../../object-store';
import type { FrameSource, MergedFrame } from './frame-source';
import type { WindowPool } from './window-pool';

const NOTHING = Buffer.alloc(0);

/**
 * Walks through the frames of one source, read in windows. The cursor itself is the current frame, so
 * that a merge of millions of frames allocates no object for any of them.
 *
 * Call `load` whenever `isLoaded` is false; it overwrites windows. Before the first `load`, only `offset`
 * is set. `load` checks the checksum of every frame, and that offsets ascend.
 */
export class SealCursor implements MergedFrame {
  /** Of the current frame; infinity at the end. */
  offset: number;
  isLoaded = false;
  window: Buffer = NOTHING;
  start = 0;
  end = 0;
  readonly #store: ObjectStore;
  readonly #source: FrameSource;
  readonly #windows: WindowPool;
  #reader: ObjectReader | null = null;
  /** Pooled buffer of the current window. A frame larger than the buffer gets one of its own. */
  #current: Buffer = NOTHING;
  /** Pooled buffer of the next window, if windows are read ahead. */
  #spare: Buffer = NOTHING;
  #ahead: Promise<Buffer> | null = null;
  /** Place of the window in its object. */
  #position: number;
  /** End of the last whole frame in the window. */
  #wholeEnd = 0;
  #lastOffset = -1;

  constructor(store: ObjectStore, source: FrameSource, windows: WindowPool) {
    this.#store = store;
    this.#source = source;
    this.#windows = windows;
    this.#position = source.start;
    this.offset = source.firstOffset;
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

  /**
   * Begins to read the first window, if windows are read ahead: the source is needed soon. An error is
   * thrown by `load`. @throws object_store_failed
   */
  async prepare(): Promise<void> {
    if (this.#reader !== null || !this.#windows.readsAhead) return;
    await this.#open();
    this.#readAhead();
  }

  /** Reads the window that begins with the next frame. @throws object_corrupt, object_store_failed */
  async load(): Promise<void> {
    if (this.#reader === null) await this.#open();
    const next = this.#position + this.#wholeEnd;
    let window = await (this.#ahead ?? this.#read(next, this.#target()));
    this.#ahead = null;
    const needed = frameEnd(window, 0);
    if (needed !== null && needed > window.length) {
      window = await this.#read(next, Buffer.allocUnsafeSlow(this.#inside(next, needed)));
    }
    if (this.#windows.readsAhead) {
      [this.#current, this.#spare] = [this.#spare, this.#current];
    }
    this.#position = next;
    this.window = window;
    this.#wholeEnd = this.#checkFrames(window);
    this.#goTo(0);
    this.isLoaded = true;
    this.#readAhead();
  }

  /**
   * Goes to the next frame. If the window does not contain it, `isLoaded` becomes false and `offset` stays.
   * After the last frame, `offset` is infinity.
   */
  advance(): void {
    if (this.end < this.#wholeEnd) this.#goTo(this.end);
    else if (this.#position + this.#wholeEnd < this.#source.end) this.isLoaded = false;
    else this.offset = Number.POSITIVE_INFINITY;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const reader = this.#reader;
    if (reader === null) return;
    this.#reader = null;
    await this.#ahead?.catch(() => undefined);
    this.#windows.release(this.#current);
    if (this.#windows.readsAhead) this.#windows.release(this.#spare);
    this.window = this.#current = this.#spare = NOTHING;
    await reader.close();
  }

  async #open(): Promise<void> {
    this.#reader = await this.#store.open(this.#source.key);
    this.#current = this.#windows.acquire();
    if (this.#windows.readsAhead) this.#spare = this.#windows.acquire();
  }

  #target(): Buffer {
    return this.#windows.readsAhead ? this.#spare : this.#current;
  }

  #inside(position: number, length: number): number {
    return Math.min(length, this.#source.end - position);
  }

  #read(position: number, into: Buffer): Promise<Buffer> {
    if (this.#reader === null) throw new NightshiftError('internal', 'read before load');
    return this.#reader.read(position, this.#inside(position, into.length), into);
  }

  #readAhead(): void {
    const next = this.#position + this.#wholeEnd;
    if (!this.#windows.readsAhead || next >= this.#source.end) return;
    this.#ahead = this.#read(next, this.#spare);
    // The next load throws the error. A cursor that is closed first never reports it.
    this.#ahead.catch(() => undefined);
  }

  #goTo(start: number): void {
    this.start = start;
    this.end = frameEnd(this.window, start) ?? this.#wholeEnd;
    this.offset = frameOffset(this.window, start);
  }

  /** Checks all whole frames; `load` has read at least the first one whole, unless it is damaged. */
  #checkFrames(window: Buffer): number {
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
