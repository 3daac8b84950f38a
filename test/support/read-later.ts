import type { ObjectReader } from '../../storage/object-store';

/** A read with a callback, as a promise. */
export function readLater(
  reader: ObjectReader,
  position: number,
  length: number,
  into?: Buffer,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    reader.readLater(position, length, into, (bytes, error) => {
      if (bytes === null) reject(error instanceof Error ? error : new Error(String(error)));
      else resolve(bytes);
    });
  });
}
