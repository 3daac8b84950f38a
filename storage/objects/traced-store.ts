import type { Readable } from 'node:stream';
import { isNightshiftError } from '../../core/errors';
import type { OpenSpan, Tracing } from '../../platform/tracing/tracing';
import type { ObjectStore } from '../object-store';

type ChildTracing = Pick<Tracing, 'beginChild'>;

/** Names of the spans of a store. */
const SPAN = { store: 'storage.Store', retrieve: 'storage.Retrieve', delete: 'storage.Delete' };

/**
 * The same store, with a span for each operation below the active span. Without an active span nothing is
 * recorded. Reads of an open object have no spans: there are as many of them as requests
 * (docs/design/tracing.md#storage-spans).
 */
export function traceStore(store: ObjectStore, tracing: ChildTracing | null): ObjectStore {
  if (tracing === null) return store;
  const traced = async <T>(name: string, key: string, work: () => Promise<T>): Promise<T> => {
    const span = tracing.beginChild(name, { 'storage.key': key });
    if (span === null) return work();
    try {
      return await work();
    } catch (error) {
      noteError(span, error);
      throw error;
    } finally {
      span.end();
    }
  };
  return {
    putIfAbsent: (key, body) => traced(SPAN.store, key, () => store.putIfAbsent(key, body)),
    concatenate: (key, parts, inspector) =>
      traced(SPAN.store, key, () => store.concatenate(key, parts, inspector)),
    read: (key, range) => traced(SPAN.retrieve, key, () => store.read(key, range)),
    stream: (key, range) => tracedStream(store.stream(key, range), key, tracing),
    scan: (key, options) => {
      const span = tracing.beginChild(SPAN.retrieve, { 'storage.key': key });
      const chunks = store.scan(key, options);
      return span === null ? chunks : tracedScan(chunks, span);
    },
    open: (key) => traced(SPAN.retrieve, key, () => store.open(key)),
    delete: (key) => traced(SPAN.delete, key, () => store.delete(key)),
    head: (key) => store.head(key),
    list: (prefix, options) => store.list(prefix, options),
    check: () => store.check(),
    storeId: () => store.storeId(),
    removeUnfinished: () => store.removeUnfinished(),
    close: () => store.close(),
  };
}

/** A missing object is often what the caller wants to know, so it is not recorded as a failure. */
function noteError(span: OpenSpan, error: unknown): void {
  if (isNightshiftError(error, 'object_missing')) span.set({ 'error.type': error.code });
  else span.fail(error);
}

async function* tracedScan(chunks: AsyncIterable<Buffer>, span: OpenSpan): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    noteError(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Listens to `close` instead of `error`: an error listener would hide errors that have no other handler. */
function tracedStream(stream: Readable, key: string, tracing: ChildTracing): Readable {
  const span = tracing.beginChild(SPAN.retrieve, { 'storage.key': key });
  if (span === null) return stream;
  return stream.once('close', () => {
    if (stream.errored !== null) noteError(span, stream.errored);
    span.end();
  });
}
