import { tell } from '../../core/async/tell';
import type { ObjectReader } from '../../storage/object-store';

/** An open object whose reads are all made by `read`. */
export function readerOf(parts: Pick<ObjectReader, 'size' | 'read' | 'close'>): ObjectReader {
  const { size, read, close } = parts;
  return {
    ...{ size, read, close: () => close.call(parts) },
    readLater: (position, length, into, onRead) => tell(read(position, length, into), onRead),
  };
}
