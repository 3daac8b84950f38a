import { tell } from '../../../core/async/tell';
import type { ObjectReader } from '../../object-store';
import { lookUpExisting } from './look-up';
import { fillFrom, ObjectBytes } from './object-bytes';
import type { S3Bucket } from './s3-bucket';

/**
 * Reads one object at any position. Each read is a request of its own, so callers with many small reads put
 * a cache in front of it. @throws object_missing, object_store_failed
 */
export async function openS3Reader(bucket: S3Bucket, key: string): Promise<ObjectReader> {
  const { size, etag } = await lookUpExisting(bucket, key);
  const read = async (position: number, length: number, into?: Buffer): Promise<Buffer> => {
    const inside = Math.max(0, Math.min(length, size - position));
    const target = into?.subarray(0, inside) ?? Buffer.allocUnsafe(inside);
    if (inside === 0) return target;
    const range = { from: position, to: position + inside };
    const bytes = new ObjectBytes(bucket, { key, range, etag });
    return target.subarray(0, await fillFrom(bytes, target));
  };
  return {
    size,
    read,
    readLater: (position, length, into, onRead) => tell(read(position, length, into), onRead),
    close: () => Promise.resolve(),
  };
}
