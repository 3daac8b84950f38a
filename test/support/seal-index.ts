import { crc32 } from 'node:zlib';
import { NightshiftError } from '../../core/errors';
import { readInt64 } from '../../core/journal/int64';
import { SEAL_INDEX_ENTRY_BYTES, type SealTrailer } from '../../core/journal/seal';

/** Where the frame of the line at `offset` begins in its seal. */
export interface SealIndexEntry {
  readonly offset: number;
  readonly position: number;
}

/** The index of a seal, checked against the CRC of its trailer. @throws object_corrupt */
export function decodeSealIndex(index: Buffer, trailer: SealTrailer): SealIndexEntry[] {
  if (index.length !== trailer.frameCount * SEAL_INDEX_ENTRY_BYTES) throw corrupt('cut off');
  if (crc32(index) !== trailer.indexCrc) throw corrupt('damaged');
  return Array.from({ length: trailer.frameCount }, (_, i) => ({
    offset: readInt64(index, i * SEAL_INDEX_ENTRY_BYTES),
    position: readInt64(index, i * SEAL_INDEX_ENTRY_BYTES + 8),
  }));
}

function corrupt(how: string): NightshiftError {
  return new NightshiftError('object_corrupt', `the index of the seal is ${how}`);
}
