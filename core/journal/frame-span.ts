import { crc32Joined, crc32WithBytes } from './crc32-join';
import type { Crc32 } from './crc32';
import { FRAME_KIND, frameEnd, frameKind, frameOffset } from './frame';
import { isSafeInt64, readUint32 } from './int64';

/** Length and checksum of a frame; the checksum covers what follows them. */
const UNCHECKED_BYTES = 8;

/** Frames that follow each other in a buffer. */
export interface FrameSpan {
  /** Position after the last one. */
  readonly end: number;
  /** Its offset. */
  readonly lastOffset: number;
}

/**
 * The whole frames from the start of `bytes`, if all are sound answers with ascending offsets above `after`; null if one
 * is not, or if there is none.
 *
 * Checks them by one checksum of all bytes, which must be the one that those of the frames and that of the rest behind them
 * give together (docs/design/journal.md#merge). A damaged frame changes it.
 */
export function soundSpan(bytes: Buffer, after: number, crc32: Crc32): FrameSpan | null {
  // First, because it reads the bytes in their order: the headers are then in the processor's cache.
  const whole = crc32(bytes);
  let at = 0;
  let crc = 0;
  let lastOffset = after;
  for (let end = frameEnd(bytes, 0); end !== null && end <= bytes.length;) {
    const offset = isSafeInt64(bytes, at + 8) ? frameOffset(bytes, at) : -1;
    if (offset <= lastOffset || !isAnswer(bytes, at)) return null;
    lastOffset = offset;
    crc = crc32WithBytes(crc, bytes, at, at + UNCHECKED_BYTES);
    crc = crc32Joined(crc, readUint32(bytes, at + 4), end - at - UNCHECKED_BYTES);
    at = end;
    end = frameEnd(bytes, at);
  }
  if (at === 0) return null;
  const rest = bytes.subarray(at);
  const isSound = crc32Joined(crc, crc32(rest), rest.length) >>> 0 === whole;
  return isSound ? { end: at, lastOffset } : null;
}

function isAnswer(bytes: Buffer, position: number): boolean {
  const kind = frameKind(bytes, position);
  return kind === FRAME_KIND.output || kind === FRAME_KIND.error;
}
