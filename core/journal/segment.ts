import type { Crc32 } from './crc32';
import { readFrame, type ReadFrame } from './frame';
import { hasObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from './magic';

/**
 * Most plan positions that one chunk, and so one segment or seal with a range, may span. A constant
 * of the format: readers find every object that overlaps a range by its name (execution §2).
 */
export const MAX_CHUNK_ENTRIES = 10_000;

/**
 * Every frame of a segment held in memory, up to the first bad length or CRC: what follows that is
 * the tail of a write that was cut, and nothing behind it can be trusted. A segment without its
 * header has none.
 */
export function* framesOfSegment(bytes: Buffer, crc32?: Crc32): Generator<ReadFrame> {
  if (!hasObjectHeader(bytes, MAGIC.segment)) return;
  let position = OBJECT_HEADER_BYTES;
  for (;;) {
    const frame = readFrame(bytes, position, crc32);
    if (frame === null) return;
    yield frame;
    position = frame.end;
  }
}
