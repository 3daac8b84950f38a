import { crc32 } from 'node:zlib';
import { NightshiftError } from '../../core/errors';
import {
  checkedEnd,
  frameEnd,
  FRAME_KIND,
  frameKind,
  frameOffset,
  type FrameKind,
} from '../../core/journal/frame';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';

import type { WindowPool } from './window-pool';

/** An object of frames in order of offset. */
export interface FrameSource {
  /** Decides between frames of the same offset: the seal's own key, or the first of several. */
  readonly rankKey: string;
  readonly key: string;
  /** Frames lie in `[start, end)`. */
  readonly start: number;
  readonly end: number;
  readonly firstOffset: number;
  readonly lastOffset: number;
}

/** A checked frame in its window. */
export interface MergedFrame {
  readonly offset: number;
  readonly kind: FrameKind;
  readonly rankKey: string;
  /** Place in its object. */
  readonly position: number;
  readonly window: Buffer;
  /** Of the frame's header in the window. */
  readonly start: number;
  readonly end: number;
}

const NOTHING = Buffer.alloc(0);

/**
 * Walks the frames of one source through windows, and is the frame at hand: no object is made of any.
 * Before the first `load` only `offset` is known; `load` is due whenever `isLoaded` is false, and
 * overwrites windows. Every frame is checked, and that offsets ascend.
 */
export class SealCursor implements MergedFrame {
  /** Of the frame at hand; infinity at the end. */
  offset: number;
  isLoaded = false;
  window: Buffer = NOTHING;
  start = 0;
  end = 0;
  readonly #store: ObjectStore;
  readonly #source: FrameSource;
  readonly #windows: WindowPool;
  #reader: ObjectReader | null = null;
  /** Holds the window, unless that needed a larger one of its own. */
  #current: Buffer = NOTHING;
  /** Where the next window comes. */
  #spare: Buffer = NOTHING;
  #ahead: Promise<Buffer> | null = null;
  /** Of the window in its object. */
  #position: number;
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

  /** Reads the window that holds the frame at hand. @throws object_corrupt, object_store_failed */
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

  /** Goes to the next frame: in the window, behind it (`isLoaded` is false), or at the end. */
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
    this.#windows.give(this.#current);
    if (this.#windows.readsAhead) this.#windows.give(this.#spare);
    this.window = this.#current = this.#spare = NOTHING;
    await reader.close();
  }

  async #open(): Promise<void> {
    this.#reader = await this.#store.open(this.#source.key);
    this.#current = this.#windows.take();
    if (this.#windows.readsAhead) this.#spare = this.#windows.take();
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
    // Whoever loads next gets the error; if nobody does, it is nobody's.
    this.#ahead.catch(() => undefined);
  }

  #goTo(start: number): void {
    this.start = start;
    this.end = frameEnd(this.window, start) ?? this.#wholeEnd;
    this.offset = frameOffset(this.window, start);
  }

  /** End of the last whole frame; `load` has seen to it that the first one is, if it is sound. */
  #checkFrames(window: Buffer): number {
    let at = 0;
    for (;;) {
      const end = checkedEnd(window, at, crc32);
      if (end === null) break;
      const offset = frameOffset(window, at);
      if (offset <= this.#lastOffset) throw this.#corrupt('frames out of order');
      if (frameKind(window, at) === FRAME_KIND.retry) throw this.#corrupt('a frame is no answer');
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
