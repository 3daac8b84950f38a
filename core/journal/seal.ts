import { NightshiftError } from '../errors';
import { readInt64, writeInt64 } from './int64';
import type { Crc32 } from './crc32';
import { encodeObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from './magic';

/**
 * A seal (docs/design/journal.md#seals): header `NSS1`; frames in order of offset, one per offset; an
 * index with 16 bytes per frame (offset i64, position in the object u64); a trailer of 20 bytes: position
 * of the index u64, number of frames u32, CRC-32 of the index u32, magic.
 */
export const SEAL_INDEX_ENTRY_BYTES = 16;
export const SEAL_TRAILER_BYTES = 20;

/** The end of a seal: where its index is and how to check it. */
export interface SealTrailer {
  /** Frames are in `[16, indexPosition)`. */
  readonly indexPosition: number;
  readonly frameCount: number;
  readonly indexCrc: number;
}

/** The bytes before the first frame. */
export function encodeSealHeader(): Buffer {
  return encodeObjectHeader(MAGIC.seal);
}

/** Index and trailer for `count` frames, the last of which ends at `indexPosition`. */
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
  if (at < 0 || tail.toString('latin1', at + 16) !== MAGIC.seal) throw corrupt('it has no trailer');
  const indexPosition = readInt64(tail, at);
  const frameCount = tail.readUInt32LE(at + 8);
  const end = indexPosition + frameCount * SEAL_INDEX_ENTRY_BYTES + SEAL_TRAILER_BYTES;
  if (indexPosition < OBJECT_HEADER_BYTES || end !== size)
    throw corrupt('its sections do not add up to its size');
  return { indexPosition, frameCount, indexCrc: tail.readUInt32LE(at + 12) };
}

function corrupt(what: string): NightshiftError {
  return new NightshiftError('object_corrupt', `this is not a complete seal: ${what}`);
}
