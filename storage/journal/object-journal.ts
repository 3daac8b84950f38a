import { OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import type { Logger } from '../../platform/logger';
import type { ObjectStore } from '../object-store';
import { inOrderAhead } from '../../core/async/in-order-ahead';
import { createJournal, type OpenJournal } from './journal';
import { ObjectSegments } from './object-segments';
import type { KeyPlace } from './scan-frames';

export interface ObjectJournalOptions {
  readonly store: ObjectStore;
  /** Longest time that an answer waits for its put. A kill -9 loses at most the answers of this time. */
  readonly flushIntervalMs?: number;
  /** Answers of this many bytes are put at once; also the largest segment, except for one large answer. */
  readonly segmentBytes?: number;
  readonly logger?: Pick<Logger, 'warn'>;
  /** Called with the duration of each put of a segment, ms, failed ones included; must not throw. */
  readonly onFlushed?: (tookMs: number) => void;
}

const FLUSH_INTERVAL_MS = 1_000;
const SEGMENT_BYTES = 1024 * 1024;
/** Small objects are read at about the latency of the store, so a few are read at once. */
const PARALLEL_READS = 8;

/**
 * The journal on any object store (docs/design/journal.md#segments-on-an-object-store). Segments are
 * immutable objects, durable once they are put. The caller closes it after its writers.
 */
export function createObjectJournal(options: ObjectJournalOptions): OpenJournal {
  const { store, logger } = options;
  const segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
  return createJournal({
    store,
    onFlushed: options.onFlushed,
    policy: {
      intervalMs: options.flushIntervalMs ?? FLUSH_INTERVAL_MS,
      soonBytes: segmentBytes,
      // With the header in it, a segment of 1 MiB is read with one request.
      maxBytes: segmentBytes - OBJECT_HEADER_BYTES,
    },
    openSegments: (scope) =>
      new ObjectSegments({
        ...scope,
        store,
        onFailure: (segment, err) => logger?.warn({ segment, err }, 'journal segment not written'),
      }),
    keysIn: (places) => keysIn(store, places),
    parallelReads: PARALLEL_READS,
    close: () => Promise.resolve(),
  });
}

/** Short listings are made at once, because each takes the latency of the store. */
async function* keysIn(store: ObjectStore, places: readonly KeyPlace[]): AsyncGenerator<string> {
  const prefixes = places.flatMap((place) => place.prefixes);
  const isWhole = places.some(({ folder }) => prefixes.includes(folder));
  if (isWhole) for (const prefix of prefixes) yield* keysWith(store, prefix);
  else yield* flat(inOrderAhead(prefixes, PARALLEL_READS, (prefix) => allKeysWith(store, prefix)));
}

async function* keysWith(store: ObjectStore, prefix: string): AsyncGenerator<string> {
  for await (const { key } of store.list(prefix)) yield key;
}

async function allKeysWith(store: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of keysWith(store, prefix)) keys.push(key);
  return keys;
}

async function* flat<T>(lists: AsyncIterable<readonly T[]>): AsyncGenerator<T> {
  for await (const list of lists) yield* list;
}
