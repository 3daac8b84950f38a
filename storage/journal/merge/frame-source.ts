import type { FrameKind } from '../../../core/journal/frame';

/** An object of frames in order of offset: a seal, or a scratch object merged from several. */
export interface FrameSource {
  /** Ranks answers to the same line: the key of the seal, or of the first of the merged seals. */
  readonly rankKey: string;
  readonly key: string;
  /** Frames are in the bytes `[start, end)`. */
  readonly start: number;
  readonly end: number;
  readonly firstOffset: number;
  readonly lastOffset: number;
}

/** A checked frame in its window, with the fields that rank it among the frames of its line. */
export interface MergedFrame {
  /** Of the line in the input. */
  readonly offset: number;
  readonly kind: FrameKind;
  readonly rankKey: string;
  /** Place of the frame in its object. */
  readonly position: number;
  readonly window: Buffer;
  /** The frame, header included, is `window[start, end)`. */
  readonly start: number;
  readonly end: number;
}
