import { crc32 } from 'node:zlib';
import { readFrame, type ReadFrame } from '../../core/journal/frame';
import { hasObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../core/journal/magic';

/** The frames of a segment held in memory, up to the first damaged one; none without a header. */
export function* framesOfSegment(bytes: Buffer): Generator<ReadFrame> {
  if (!hasObjectHeader(bytes, MAGIC.segment)) return;
  let position = OBJECT_HEADER_BYTES;
  for (;;) {
    const frame = readFrame(bytes, position, crc32);
    if (frame === null) return;
    yield frame;
    position = frame.end;
  }
}
