import { FAULT_CODES } from '../../core/dispatch/drop-codes';
import type { Band, PerBand } from '../../core/dispatch/queue/band';
import type { DispatchedBy } from '../../core/dispatch/queue/queued-request';
import { Observations } from './read-histogram';

/** Upper bounds of the buckets of times, s. */
export const SECONDS: readonly number[] = [
  0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
];

/** Values of `error_type`: why a request was refused on arrival. */
export const PUSH_ERRORS = [
  'ErrTooManyFlows',
  'ErrInsufficientFlowCapacity',
  'ErrQueueBytesExceeded',
  'ErrNotCritical',
  'ErrInternal',
] as const;

/** One of {@link PUSH_ERRORS}. */
export type PushError = (typeof PUSH_ERRORS)[number];

/** What made it the turn of a request, in the order of the series. */
export const TURNS: readonly DispatchedBy[] = ['bypass', 'queue', 'floor', 'promoted'];

/**
 * The numbers of one model, or of all models that share a label. They are plain fields, because a look-up by labels
 * costs more than the rest of a request's accounting; the series read them at a scrape.
 */
export class ModelMeter {
  queued = 0;
  inFlight = 0;
  bypassed = 0;
  expired = 0;
  cancelled = 0;
  readonly refused = counts(PUSH_ERRORS);
  /** Seconds in the queue of requests that got a 2xx in the end, and of others. */
  readonly queueTime = {
    ofSuccesses: new Observations(SECONDS),
    ofOthers: new Observations(SECONDS),
  };
}

/** The numbers of one band. */
export class BandMeter {
  readonly dispatched = counts(TURNS);
  /** Requests that got no answer of a backend. */
  readonly dropped = counts(FAULT_CODES);
  /** Answers of backends that broke off after they had begun. */
  cut = 0;
  /** Seconds from the dispatch to the first byte. */
  readonly ttfb = new Observations(SECONDS);
}

/** The numbers of all requests of a gateway (docs/metrics.md#gateway). */
export interface FlowMeters {
  readonly bands: PerBand<BandMeter>;
  /** The meter of a model, which stays the same until {@link leaveModel}: a gauge falls where it rose. */
  enterModel(model: string): ModelMeter;
  /** The counterpart of one {@link enterModel}. */
  leaveModel(model: string): void;
  /** Counts the cost of a request that has ended, in the unit in which tenants share. */
  addTokens(band: Band, tenant: string, cost: number): void;
}

function counts<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>;
}
