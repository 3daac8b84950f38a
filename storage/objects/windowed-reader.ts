import { promised, tell, type OnSettled } from '../../core/async/tell';
import type { ObjectReader } from '../object-store';
import { ReadAhead } from './read-ahead';

/** Where the bytes of an open object come from. */
export interface WindowedSource {
  readonly size: number;
  /**
   * Reads bytes inside the object and tells how many, fewer at its end. Always asynchronous: a share or a store may hang
   * for minutes.
   */
  readInto(position: number, into: Buffer, onRead: OnSettled<number>): void;
  /** Called at most once. */
  close(): Promise<void>;
}

/**
 * An open object whose small forward reads come from a window that was read ahead. Synchronous reads would
 * block heartbeats, health checks and all other chunks, so only bytes in memory are returned at once.
 */
export function createWindowedReader(source: WindowedSource): ObjectReader {
  const { size } = source;
  let closing: Promise<void> | null = null;
  const ahead = new ReadAhead(
    (position, into) => promised((onRead) => source.readInto(position, into, onRead)),
    size,
  );
  const targetOf = (position: number, length: number, into?: Buffer): Buffer => {
    const inside = Math.max(0, Math.min(length, size - position));
    return into?.subarray(0, inside) ?? Buffer.allocUnsafe(inside);
  };
  const readLater: ObjectReader['readLater'] = (position, length, into, onRead) => {
    const target = targetOf(position, length, into);
    if (target.length === 0 || ahead.serve(position, target)) return onRead(target, null);
    const readAlone = (): void =>
      source.readInto(position, target, (bytesRead, error) =>
        onRead(bytesRead === null ? null : target.subarray(0, bytesRead), error),
      );
    if (ahead.refuses(position, target)) return readAlone();
    tell(ahead.load(position, target), (isServed, error) => {
      if (isServed === false) readAlone();
      else onRead(isServed === null ? null : target, error);
    });
  };
  return {
    size,
    readLater,
    read: (position, length, into) =>
      promised((onRead) => readLater(position, length, into, onRead)),
    readNow: (position, length, into) => {
      if (closing !== null) return null;
      const target = targetOf(position, length, into);
      return ahead.serve(position, target) ? target : null;
    },
    readAhead: (position) => ahead.fill(position),
    close: () => (closing ??= source.close()),
  };
}
