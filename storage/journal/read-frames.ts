import type { Crc32 } from '../../core/journal/crc32';
import { frameEnd, readFrame, readNotBeforeMs } from '../../core/journal/frame';
import { hasObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import { decodeSealTrailer, SEAL_TRAILER_BYTES } from '../../core/journal/seal';
import { isNightshiftError } from '../../core/errors';
import type { ObjectReader, ObjectStore } from '../object-store';
import type { FrameRef } from './journal-store';

const WINDOW_BYTES = 256 * 1024;

/**
 * Every frame of one segment or seal, in order of position, read in windows. Stops at the first bad
 * length or CRC: a torn write at the end, or damage (docs/design/journal.md#reading). Yields nothing if the
 * object was deleted meanwhile. @throws object_store_failed
 */
export async function* readFrames(
  store: ObjectStore,
  key: string,
  crc32: Crc32,
): AsyncGenerator<FrameRef> {
  try {
    yield* framesOf(await store.open(key), key, crc32);
  } catch (error) {
    // A store that remembers sizes notices only when it reads.
    if (!isNightshiftError(error, 'object_missing')) throw error;
  }
}

async function* framesOf(
  reader: ObjectReader,
  key: string,
  crc32: Crc32,
): AsyncGenerator<FrameRef> {
  try {
    const header = await reader.read(0, OBJECT_HEADER_BYTES);
    if (hasObjectHeader(header, MAGIC.segment)) {
      yield* framesBetween(reader, { key, end: reader.size, crc32 });
    } else if (hasObjectHeader(header, MAGIC.seal)) {
      yield* framesBetween(reader, { key, end: await endOfFrames(reader), crc32 });
    }
  } finally {
    await reader.close();
  }
}

/** A seal with a damaged trailer still yields its whole frames. */
async function endOfFrames(reader: ObjectReader): Promise<number> {
  const at = Math.max(0, reader.size - SEAL_TRAILER_BYTES);
  const tail = await reader.read(at, SEAL_TRAILER_BYTES);
  try {
    return decodeSealTrailer(tail, reader.size).indexPosition;
  } catch (error) {
    if (isNightshiftError(error, 'object_corrupt')) return reader.size;
    throw error;
  }
}

async function* framesBetween(
  reader: ObjectReader,
  object: { key: string; end: number; crc32: Crc32 },
): AsyncGenerator<FrameRef> {
  let start = OBJECT_HEADER_BYTES;
  let length = WINDOW_BYTES;
  let buffer = Buffer.allocUnsafeSlow(Math.min(length, object.end));
  while (start < object.end) {
    if (length > buffer.length) buffer = Buffer.allocUnsafeSlow(Math.min(length, object.end));
    // Frame references hold no bytes of the window, so the next one may overwrite it.
    const window = await reader.read(start, Math.min(length, object.end - start), buffer);
    let at = 0;
    for (;;) {
      const frame = readFrame(window, at, object.crc32);
      if (frame === null) break;
      const ref = { header: frame.header, objectKey: object.key, position: start + at };
      const notBeforeMs = readNotBeforeMs(window, frame);
      const byteLength = frame.end - at;
      yield { ...ref, byteLength, ...(notBeforeMs === null ? {} : { notBeforeMs }) };
      at = frame.end;
    }
    const next = neededBytes(window, at, object.end - start - at);
    if (next === null) return;
    start += at;
    length = Math.max(WINDOW_BYTES, next);
  }
}

/**
 * How many bytes to read from `at` to get the next frame whole, if the window ended before it. If the
 * window ended within its header, 1: the caller reads a full window anyway. Null if the frame is damaged
 * or reaches beyond the object.
 */
function neededBytes(window: Buffer, at: number, left: number): number | null {
  const isAtHeader = window.length - at < left && frameEnd(window, at) === null;
  if (isAtHeader) return at === 0 ? null : 1;
  const end = frameEnd(window, at);
  if (end === null || end <= window.length || end - at > left) return null;
  return end - at;
}
