import type { Readable } from 'node:stream';
import { isNightshiftError } from '../../core/errors';
import type { ObjectReader, ObjectStore } from '../object-store';

/** Values of the label `operation` of `file_storage_operations_total`. */
export type StoreOperation = 'store' | 'retrieve' | 'delete';

/**
 * How an operation went, or an attempt at it. `success`: it was done. `retry`: an attempt failed, and the
 * S3 client or the writer of the journal makes another one. `failed`: it failed for its caller, who decides
 * whether that is a retry or the end.
 */
export type StoreOutcome = 'success' | 'retry' | 'failed';

/** Called with the outcome of each operation; must not throw. */
export type StoreObserver = (operation: StoreOperation, outcome: StoreOutcome) => void;

/**
 * The same store, observed. An operation has failed if the store failed. A missing object, or a body that
 * breaks off, is not a fault of the store and is not counted. Reads of an open object, look-ups and
 * listings are counted, as `retrieve`, only when they fail: there are as many of them as requests.
 */
export function observeStore(store: ObjectStore, observe: StoreObserver): ObjectStore {
  const watched = watching(observe);
  const counted = async <T>(operation: StoreOperation, work: Promise<T>): Promise<T> => {
    const value = await watched(operation, work);
    observe(operation, 'success');
    return value;
  };
  return {
    putIfAbsent: (key, body) => counted('store', store.putIfAbsent(key, body)),
    concatenate: (key, parts, inspector) =>
      counted('store', store.concatenate(key, parts, inspector)),
    read: (key, range) => counted('retrieve', store.read(key, range)),
    stream: (key, range) => observedStream(store.stream(key, range), observe),
    scan: (key, options) => observedScan(store.scan(key, options), observe),
    open: async (key) => observedReader(await counted('retrieve', store.open(key)), observe),
    delete: (key) => counted('delete', store.delete(key)),
    head: (key) => watched('retrieve', store.head(key)),
    list: (prefix, options) => observedList(store.list(prefix, options), observe),
    check: () => store.check(),
    storeId: () => store.storeId(),
    removeUnfinished: () => watched('delete', store.removeUnfinished()),
    close: () => store.close(),
  };
}

/** Reports the faults of operations, which still reject. */
function watching(observe: StoreObserver) {
  return <T>(operation: StoreOperation, work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      if (isFault(error)) observe(operation, 'failed');
      throw error;
    });
}

function isFault(error: unknown): boolean {
  return isNightshiftError(error, 'object_store_failed');
}

/** Listens to `close` instead of `error`: an error listener would hide errors that have no other handler. */
function observedStream(stream: Readable, observe: StoreObserver): Readable {
  return stream.once('close', () =>
    observe('retrieve', isFault(stream.errored) ? 'failed' : 'success'),
  );
}

/** Counted once, when it has ended or its consumer stops. */
async function* observedScan(
  chunks: AsyncIterable<Buffer>,
  observe: StoreObserver,
): AsyncGenerator<Buffer> {
  let outcome: StoreOutcome = 'success';
  try {
    yield* chunks;
  } catch (error) {
    if (isFault(error)) outcome = 'failed';
    throw error;
  } finally {
    observe('retrieve', outcome);
  }
}

async function* observedList<T>(
  listed: AsyncIterable<T>,
  observe: StoreObserver,
): AsyncGenerator<T> {
  try {
    yield* listed;
  } catch (error) {
    if (isFault(error)) observe('retrieve', 'failed');
    throw error;
  }
}

function observedReader(reader: ObjectReader, observe: StoreObserver): ObjectReader {
  const { size } = reader;
  const readNow = reader.readNow?.bind(reader);
  const watched = watching(observe);
  return {
    size,
    ...(readNow === undefined ? {} : { readNow }),
    readAhead: (position) => watched('retrieve', Promise.resolve(reader.readAhead?.(position))),
    read: (position, length, into) => watched('retrieve', reader.read(position, length, into)),
    readLater: (position, length, into, onRead) =>
      reader.readLater(position, length, into, (bytes, error) => {
        if (isFault(error)) observe('retrieve', 'failed');
        onRead(bytes, error);
      }),
    close: () => reader.close(),
  };
}
