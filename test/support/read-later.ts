import { promised } from '../../core/async/tell';
import type { ObjectReader } from '../../storage/object-store';

/** A read with a callback, as a promise. */
export function readLater(
  reader: ObjectReader,
  position: number,
  length: number,
  into?: Buffer,
): Promise<Buffer> {
  return promised((onRead) => reader.readLater(position, length, into, onRead));
}
