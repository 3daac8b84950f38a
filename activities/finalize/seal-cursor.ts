import { GatewayError } from '../../core/errors';
import {
  frameEnd,
  FRAME_KIND,
  readFrame,
  type FrameKind,
  frameOffset,
} from '../../core/journal/frame';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';
import { nativeCrc32 } from './native-crc32';

/** One window of one object; 64 objects with the next window on its way, or 128 without: 32 MiB. */
export const WINDOW_BYTES = 256 * 1024;

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

/**
 * Walks the frames of one source through windows. Before the first `load` only `offset` is known;
 * `load` is due whenever `isLoaded` is false. Every frame is checked, and that offsets ascend.
 */
export class SealCursor {
  /** Of the frame at hand; infinity at the end. */
  offset: number;
  isLoaded = false;
  readonly #store: ObjectStore;
  readonly #source: FrameSource;
  readonly #readsAhead: boolean;
  #reader: ObjectReader | null = null;
  #ahead: Promise<Buffer> | null = null;
  #window: Buffer = Buffer.alloc(0);
  /** Of the window in its object. */
  #position: number;
  #at = 0;
  #wholeEnd = 0;
  #lastOffset = -1;

  constructor(store: ObjectStore, source: FrameSource, options: { readsAhead: boolean }) {
    this.#store = store;
    this.#source = source;
    this.#readsAhead = options.readsAhead;
    this.#position = source.start;
    this.offset = source.firstOffset;
  }

  /** Reads the window that holds the frame at hand. @throws object_corrupt, object_store_failed */
  async load(): Promise<void> {
    this.#reader ??= await this.#store.open(this.#source.key);
    const next = this.#position + this.#wholeEnd;
    let window = await (this.#ahead ?? this.#read(next, WINDOW_BYTES));
    this.#ahead = null;
    const needed = frameEnd(window, 0);
    if (needed !== null && needed > window.length) window = await this.#read(next, needed);
    this.#position = next;
    this.#window = window;
    this.#at = 0;
    this.#wholeEnd = this.#checkFrames(window);
    this.offset = frameOffset(window, 0);
    this.isLoaded = true;
    this.#readAhead();
  }

  /** The frame at hand; only while loaded. */
  frame(): MergedFrame {
    return {
      offset: this.offset,
      // Checked when the window was read.
      kind: this.#window[this.#at + 16] as FrameKind,
      rankKey: this.#source.rankKey,
      position: this.#position + this.#at,
      window: this.#window,
      start: this.#at,
      end: frameEnd(this.#window, this.#at) ?? this.#wholeEnd,
    };
  }

  /** Goes to the next frame: in the window, behind it (`isLoaded` is false), or at the end. */
  advance(): void {
    this.#at = frameEnd(this.#window, this.#at) ?? this.#wholeEnd;
    if (this.#at < this.#wholeEnd) {
      this.offset = frameOffset(this.#window, this.#at);
    } else if (this.#position + this.#wholeEnd < this.#source.end) {
      this.isLoaded = false;
    } else {
      this.offset = Number.POSITIVE_INFINITY;
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = null;
    this.#window = Buffer.alloc(0);
    await this.#ahead?.catch(() => undefined);
    await reader?.close();
  }

  #read(position: number, length: number): Promise<Buffer> {
    if (this.#reader === null) throw new GatewayError('internal', 'read before load');
    return this.#reader.read(position, Math.min(length, this.#source.end - position));
  }

  #readAhead(): void {
    const next = this.#position + this.#wholeEnd;
    if (!this.#readsAhead || next >= this.#source.end) return;
    this.#ahead = this.#read(next, WINDOW_BYTES);
    // Whoever loads next gets the error; if nobody does, it is nobody's.
    this.#ahead.catch(() => undefined);
  }

  /** End of the last whole frame; `load` has seen to it that the first one is, if it is sound. */
  #checkFrames(window: Buffer): number {
    let at = 0;
    for (;;) {
      const frame = readFrame(window, at, nativeCrc32);
      if (frame === null) break;
      const { offset, kind } = frame.header;
      if (offset <= this.#lastOffset) throw this.#corrupt('frames out of order');
      if (kind === FRAME_KIND.retry) throw this.#corrupt('a frame is no answer');
      this.#lastOffset = offset;
      at = frame.end;
    }
    if (at === 0) throw this.#corrupt('a frame is damaged');
    return at;
  }

  #corrupt(what: string): GatewayError {
    return new GatewayError('object_corrupt', `${this.#source.key}: ${what}`);
  }
}
