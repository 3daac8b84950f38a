import type { Readable } from 'node:stream';
import { isNightshiftError } from '../../core/errors';
import type { ObjectReader, ObjectStore } from '../object-store';

/** What is done to objects, in the words of seed 000's `file_storage_operations_total`. */
export type StoreOperation = 'store' | 'retrieve' | 'delete';

/** Told how each operation ended; must not throw. */
export type StoreObserver = (operation: StoreOperation, ok: boolean) => void;

/**
 * The same store, observed. An operation is not ok where the store failed; an object that is not
 * there, or a body that breaks off, is none of its faults and counts as ok or not at all. Reads of an
 * open object are told only where they fail: there are as many as requests.
 */
export function observeStore(store: ObjectStore, observe: StoreObserver): ObjectStore {
  const told = <T>(operation: StoreOperation, work: Promise<T>): Promise<T> =>
    work.then(
      (value) => {
        observe(operation, true);
        return value;
      },
      (error: unknown) => {
        if (isFault(error)) observe(operation, false);
        throw error;
      },
    );
  return {
    putIfAbsent: (key, body) => told('store', store.putIfAbsent(key, body)),
    read: (key, range) => told('retrieve', store.read(key, range)),
    stream: (key, range) => observedStream(store.stream(key, range), observe),
    open: async (key) => observedReader(await told('retrieve', store.open(key)), observe),
    delete: (key) => told('delete', store.delete(key)),
    head: (key) => store.head(key),
    list: (prefix) => store.list(prefix),
    check: () => store.check(),
    close: () => store.close(),
  };
}

function isFault(error: unknown): boolean {
  return isNightshiftError(error, 'object_store_failed');
}

/** By `close`, not by `error`: a listener of errors would hide those that nobody else listens for. */
function observedStream(stream: Readable, observe: StoreObserver): Readable {
  return stream.once('close', () => observe('retrieve', !isFault(stream.errored)));
}

function observedReader(reader: ObjectReader, observe: StoreObserver): ObjectReader {
  const { size } = reader;
  const readNow = reader.readNow?.bind(reader);
  return {
    size,
    ...(readNow === undefined ? {} : { readNow }),
    read: (position, length, into) =>
      reader.read(position, length, into).catch((error: unknown) => {
        if (isFault(error)) observe('retrieve', false);
        throw error;
      }),
    close: () => reader.close(),
  };
}
