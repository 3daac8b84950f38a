import { Counter, exponentialBuckets, Histogram, type Registry } from 'prom-client';
import { DROP_LABELS } from '../../core/dispatch/drop-codes';
import { createLabelValues } from '../label-values';
import { createLimitGauges } from '../limit-gauges';
import { createRequestTallies } from './request-tally';

/** Limits on the series of model names, which clients choose. */
export interface SeriesLimits {
  readonly maxLabelValues?: number;
  /** Models in the configuration; each always has a series of its own. */
  readonly models?: readonly string[];
  readonly idleMs?: number;
  readonly nowMs?: () => number;
}

const MAX_LABEL_VALUES = 200;
const IDLE_MS = 3_600_000;

/**
 * Series of requests (docs/metrics.md#requests). Any tenant can invent model names, so the number of series
 * by model is bounded.
 */
export function createModelSeries(registers: Registry[], limits: SeriesLimits) {
  const listeners = new Set<(model: string) => void>();
  const modelLabels = createLabelValues({
    max: limits.maxLabelValues ?? MAX_LABEL_VALUES,
    reserved: limits.models ?? [],
    idleMs: limits.idleMs ?? IDLE_MS,
    nowMs: limits.nowMs ?? (() => performance.now()),
    onGone: (model) => {
      tallies.forget(model);
      for (const metric of byModel) metric.remove({ model });
      for (const code of DROP_LABELS) requestsDropped.remove({ model, code });
      for (const listener of listeners) listener(model);
    },
  });
  const tallies = createRequestTallies(registers, () => modelLabels.sweep());
  const requests = requestSeries(registers);
  const requestsDropped = new Counter({
    name: 'model_requests_dropped_total',
    help: 'Requests that a gateway gave up unserved, by the reason it gave',
    labelNames: ['model', 'code'] as const,
    registers,
  });
  const byModel = Object.values(requests);
  const retriesByCause = new Counter({
    name: 'request_retries_by_cause_total',
    help: 'Tries that failed and are repeated, by cause',
    labelNames: ['cause'] as const,
    registers,
  });
  /** Calls `listener` with each model whose series are removed. */
  const onModelGone = (listener: (model: string) => void): void => void listeners.add(listener);
  const modelLimits = createLimitGauges(registers, modelLabels);
  return {
    ...requests,
    tallyOf: tallies.tallyOf,
    retriesByCause,
    requestsDropped,
    modelLabels,
    modelLimits,
    onModelGone,
  };
}

function requestSeries(registers: Registry[]) {
  const labelNames = ['model'] as const;
  return {
    requestDuration: new Histogram({
      name: 'model_request_execution_duration_seconds',
      help: 'Time of one try of a request at a model server, without the queue of a gateway',
      labelNames,
      buckets: exponentialBuckets(0.01, 2, 15),
      registers,
    }),
    requestQueueTime: new Histogram({
      name: 'model_request_queue_seconds',
      help: 'Time of a request in the queue of its gateway, as the gateway reports it',
      labelNames,
      buckets: exponentialBuckets(0.001, 4, 11),
      registers,
    }),
    routeWaits: new Counter({
      name: 'model_route_waits_total',
      help: 'Times that requests of a model waited because no running worker has a gateway for it',
      labelNames,
      registers,
    }),
  };
}
