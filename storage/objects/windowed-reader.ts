import { tell, type OnSettled } from '../../core/async/tell';
import type { ObjectReader } from '../object-store';
import { ReadAhead, type ReadInto } from './read-ahead';

/** Where the bytes of an open object come from. */
export interface WindowedSource {
  readonly size: number;
  /** Reads bytes inside the object. Always asynchronous: a share or a store may hang for minutes. */
  readonly readInto: ReadInto;
  /** The same with a callback. */
  readLater(position: number, into: Buffer, onRead: OnSettled<number>): void;
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
  const isThere = (position: number, target: Buffer): boolean =>
    target.length === 0 || ahead.serve(position, target);
  const loadOrRead = async (position: number, target: Buffer): Promise<number> => {
    if (await ahead.load(position, target)) return target.length;
    return readInto(position, target);
  };
  return {
    size,
    read: async (position, length, into) => {
      const target = targetOf(position, length, into);
      if (isThere(position, target)) return target;
      return target.subarray(0, await loadOrRead(position, target));
    },
    readLater: (position, length, into, onRead) => {
      const target = targetOf(position, length, into);
      if (isThere(position, target)) return onRead(target, null);
      const onBytes: OnSettled<number> = (bytesRead, error) =>
        onRead(bytesRead === null ? null : target.subarray(0, bytesRead), error);
      if (ahead.refuses(position, target)) source.readLater(position, target, onBytes);
      else tell(loadOrRead(position, target), onBytes);
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
