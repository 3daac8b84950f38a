import { NightshiftError } from '../errors';
import { readInt64, writeInt64 } from './int64';
import type { Crc32 } from './crc32';
import { encodeObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from './magic';

/**
 * A seal (execution §6): header `NSS1`; frames in order of offset, one per offset; an index of 16
 * bytes each (offset i64, position in the object u64); a trailer of 20 bytes: index position u64,
 * number of frames u32, CRC-32 of the index u32, magic.
 */
export const SEAL_INDEX_ENTRY_BYTES = 16;
export const SEAL_TRAILER_BYTES = 20;

/** The end of a seal: where its index lies and how to check it. */
export interface SealTrailer {
  /** Frames lie in `[16, indexPosition)`. */
  readonly indexPosition: number;
  readonly frameCount: number;
  readonly indexCrc: number;
}

/** The bytes before the first frame. */
export function encodeSealHeader(): Buffer {
  return encodeObjectHeader(MAGIC.seal);
}

/** Index and trailer for `count` frames of the given offsets and positions, which end at `indexPosition`. */
export function encodeSealEnd(
  frames: Iterable<{ readonly offset: number; readonly position: number }>,
  { count, indexPosition }: { readonly count: number; readonly indexPosition: number },
  crc32: Crc32,
): Buffer {
  const indexBytes = count * SEAL_INDEX_ENTRY_BYTES;
  const end = Buffer.allocUnsafe(indexBytes + SEAL_TRAILER_BYTES);
  let at = 0;
  for (const frame of frames) {
    writeInt64(end, frame.offset, at);
    writeInt64(end, frame.position, at + 8);
    at += SEAL_INDEX_ENTRY_BYTES;
  }
  writeInt64(end, indexPosition, indexBytes);
  end.writeUInt32LE(count, indexBytes + 8);
  end.writeUInt32LE(crc32(end.subarray(0, indexBytes)), indexBytes + 12);
  end.write(MAGIC.seal, indexBytes + 16, 'latin1');
  return end;
}

/**
 * The trailer from the last bytes of a seal of `size` bytes. Checks that header, frames, index and
 * trailer fill the object exactly. @throws object_corrupt
 */
export function decodeSealTrailer(tail: Buffer, size: number): SealTrailer {
  const at = tail.length - SEAL_TRAILER_BYTES;
  if (at < 0 || tail.toString('latin1', at + 16) !== MAGIC.seal) throw corrupt('no trailer');
  const indexPosition = readInt64(tail, at);
  const frameCount = tail.readUInt32LE(at + 8);
  const end = indexPosition + frameCount * SEAL_INDEX_ENTRY_BYTES + SEAL_TRAILER_BYTES;
  if (indexPosition < OBJECT_HEADER_BYTES || end !== size)
    throw corrupt('its parts do not fill it');
  return { indexPosition, frameCount, indexCrc: tail.readUInt32LE(at + 12) };
}

/** Where the frame of the line at `offset` begins in the object. */
export interface SealIndexEntry {
  readonly offset: number;
  readonly position: number;
}

/** The index, checked against the trailer's CRC. @throws object_corrupt */
export function decodeSealIndex(
  index: Buffer,
  trailer: SealTrailer,
  crc32: Crc32,
): SealIndexEntry[] {
  if (index.length !== trailer.frameCount * SEAL_INDEX_ENTRY_BYTES) throw corrupt('index cut off');
  if (crc32(index) !== trailer.indexCrc) throw corrupt('index damaged');
  return Array.from({ length: trailer.frameCount }, (_, i) => ({
    offset: readInt64(index, i * SEAL_INDEX_ENTRY_BYTES),
    position: readInt64(index, i * SEAL_INDEX_ENTRY_BYTES + 8),
  }));
}

function corrupt(what: string): NightshiftError {
  return new NightshiftError('object_corrupt', `this is not a whole seal: ${what}`);
}
