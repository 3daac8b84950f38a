import type { ObjectReader } from '../object-store';
import { ReadAhead, type ReadInto } from './read-ahead';

/** Where the bytes of an open object come from. */
export interface WindowedSource {
  readonly size: number;
  /** Reads bytes inside the object. Always asynchronous: a share or a store may hang for minutes. */
  readonly readInto: ReadInto;
  /** Called at most once. */
  close(): Promise<void>;
}

/**
 * An open object whose small forward reads come from a window that was read ahead. Synchronous reads would
 * block heartbeats, health checks and all other chunks, so only bytes in memory are returned at once.
 */
export function createWindowedReader(source: WindowedSource): ObjectReader {
  const { size, readInto } = source;
  let closing: Promise<void> | null = null;
  const ahead = new ReadAhead(readInto, size);
  const targetOf = (position: number, length: number, into?: Buffer): Buffer => {
    const inside = Math.max(0, Math.min(length, size - position));
    return into?.subarray(0, inside) ?? Buffer.allocUnsafe(inside);
  };
  return {
    size,
    read: async (position, length, into) => {
      const target = targetOf(position, length, into);
      if (target.length === 0 || ahead.serve(position, target)) return target;
      if (await ahead.load(position, target)) return target;
      return target.subarray(0, await readInto(position, target));
    },
    readNow: (position, length, into) => {
      if (closing !== null) return null;
      const target = targetOf(position, length, into);
      return ahead.serve(position, target) ? target : null;
    },
    readAhead: (position) => ahead.fill(position),
    close: () => (closing ??= source.close()),
  };
}
