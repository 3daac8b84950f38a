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
/** After this many unwanted keys of one listing, the wanted ones behind them get a listing of their own. */
const MAX_UNWANTED = 50;

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

/** The first page of each place is fetched at once, because it takes the latency of the store. */
async function* keysIn(store: ObjectStore, places: readonly KeyPlace[]): AsyncGenerator<string> {
  const begun = inOrderAhead(places, places.length, async (place) => {
    const keys = keysOf(store, place);
    return { keys, first: await keys.next() };
  });
  for await (const { keys, first } of begun) {
    if (first.done !== true) yield first.value;
    yield* keys;
  }
}

/** With one listing, unless many keys are between the wanted ones and the last ones. */
async function* keysOf(store: ObjectStore, place: KeyPlace): AsyncGenerator<string> {
  const { folder, after, before, last } = place;
  let unwanted = 0;
  for await (const { key } of store.list(folder, { after })) {
    if (key < before || (last !== undefined && key.startsWith(last))) yield key;
    else if (last === undefined) return;
    else if (++unwanted === MAX_UNWANTED) {
      yield* keysWith(store, last);
      return;
    }
  }
}

async function* keysWith(store: ObjectStore, prefix: string): AsyncGenerator<string> {
  for await (const { key } of store.list(prefix)) yield key;
}
