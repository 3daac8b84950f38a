import type { Readable } from 'node:stream';
import { isNightshiftError } from '../../core/errors';
import type { ObjectReader, ObjectStore } from '../object-store';

/** Values of the label `operation` of `file_storage_operations_total`. */
export type StoreOperation = 'store' | 'retrieve' | 'delete';

/** Called with the outcome of each operation; must not throw. */
export type StoreObserver = (operation: StoreOperation, ok: boolean) => void;

/**
 * The same store, observed. An operation is not ok if the store failed. A missing object, or a body that
 * breaks off, is not a fault of the store and is not counted. Reads of an open object are counted only
 * when they fail: there are as many of them as requests.
 */
export function observeStore(store: ObjectStore, observe: StoreObserver): ObjectStore {
  const observed = <T>(operation: StoreOperation, work: Promise<T>): Promise<T> =>
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
    putIfAbsent: (key, body) => observed('store', store.putIfAbsent(key, body)),
    concatenate: (key, parts) => observed('store', store.concatenate(key, parts)),
    read: (key, range) => observed('retrieve', store.read(key, range)),
    stream: (key, range) => observedStream(store.stream(key, range), observe),
    open: async (key) => observedReader(await observed('retrieve', store.open(key)), observe),
    delete: (key) => observed('delete', store.delete(key)),
    head: (key) => store.head(key),
    list: (prefix) => store.list(prefix),
    check: () => store.check(),
    storeId: () => store.storeId(),
    removeUnfinished: () => store.removeUnfinished(),
    close: () => store.close(),
  };
}

function isFault(error: unknown): boolean {
  return isNightshiftError(error, 'object_store_failed');
}

/** Listens to `close` instead of `error`: an error listener would hide errors that have no other handler. */
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
