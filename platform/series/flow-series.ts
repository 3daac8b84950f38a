import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { createLabelValues } from '../label-values';

/** Limits on the series of models and tenants, which clients choose. */
export interface FlowSeriesLimits {
  readonly maxModels?: number;
  readonly maxTenants?: number;
  /** Models in the configuration; each always has a series of its own. */
  readonly models?: readonly string[];
  readonly idleMs?: number;
  readonly nowMs?: () => number;
}

const MAX_MODELS = 200;
const MAX_TENANTS = 1_000;
const IDLE_MS = 3_600_000;
const BANDS = ['critical', 'standard', 'sheddable'];
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/**
 * Series of requests in the queue and in flight (docs/metrics.md#gateway). The first seven have the names of the
 * first description of the queue. Bodies are never changed, so `targetModel` is always `model`.
 */
export function createFlowSeries(registers: Registry[], limits: FlowSeriesLimits) {
  const { idleMs = IDLE_MS, nowMs = () => performance.now() } = limits;
  const bounds = { idleMs, nowMs };
  const models = createLabelValues({
    ...bounds,
    max: limits.maxModels ?? MAX_MODELS,
    reserved: limits.models ?? [],
    onGone: (model) => removeModel(model),
  });
  const tenants = createLabelValues({
    ...bounds,
    max: limits.maxTenants ?? MAX_TENANTS,
    onGone: (tenant) => {
      for (const band of BANDS) byBand.serviceTokens.remove({ band, tenant });
    },
  });
  const sweep = (): void => {
    models.sweep();
    tenants.sweep();
  };
  const byModel = modelSeries(registers, sweep);
  const byBand = bandSeries(registers);
  const removeModel = (model: string): void => {
    const labels = { model, targetModel: model };
    const { queueLatency, queuePushErrors, ...plain } = byModel;
    for (const metric of Object.values(plain)) metric.remove(labels);
    for (const success of ['true', 'false']) queueLatency.remove({ ...labels, success });
    for (const error of PUSH_ERROR_TYPES) queuePushErrors.remove({ ...labels, error_type: error });
  };
  return { ...byModel, ...byBand, models, tenants };
}

/** Values of `error_type`. */
const PUSH_ERROR_TYPES = [
  'ErrTooManyFlows',
  'ErrInsufficientFlowCapacity',
  'ErrQueueBytesExceeded',
  'ErrNotCritical',
  'ErrInternal',
] as const;

const MODEL_LABELS = ['model', 'targetModel'] as const;

function modelSeries(registers: Registry[], beforeCollecting: () => void) {
  const labelNames = MODEL_LABELS;
  const counter = (name: string, help: string) =>
    new Counter({ name, help, labelNames, registers });
  return {
    queueLength: new Gauge({
      ...{ name: 'queue_length', help: 'Requests that wait', labelNames, registers },
      collect: beforeCollecting,
    }),
    stockLevel: new Gauge({
      ...{ name: 'stock_level', help: 'Requests in flight at backends', labelNames, registers },
    }),
    queueLatency: new Histogram({
      name: 'queue_latency_seconds',
      help: 'Time from the arrival of a request to its dispatch, or to its drop',
      labelNames: [...MODEL_LABELS, 'success'] as const,
      buckets: SECONDS,
      registers,
    }),
    bypassRate: counter('bypass_rate', 'Requests that were dispatched on arrival'),
    requestsExpired: counter('requests_expired', 'Requests that waited for too long'),
    requestsCancelled: counter('requests_cancelled', 'Requests whose client closed its connection'),
    queuePushErrors: new Counter({
      name: 'queue_push_errors',
      help: 'Requests that were refused on arrival, by error',
      labelNames: [...MODEL_LABELS, 'error_type'] as const,
      registers,
    }),
  };
}

function bandSeries(registers: Registry[]) {
  return {
    dispatched: new Counter({
      name: 'gateway_dispatched_total',
      help: 'Requests sent to backends, by band and by what made it their turn',
      labelNames: ['band', 'by'] as const,
      registers,
    }),
    dropped: new Counter({
      name: 'gateway_dropped_total',
      help: 'Requests that got no answer of a backend, by band and code',
      labelNames: ['band', 'code'] as const,
      registers,
    }),
    serviceTokens: new Counter({
      name: 'gateway_service_tokens_total',
      help: 'Input and output tokens of ended requests',
      labelNames: ['band', 'tenant'] as const,
      registers,
    }),
    ttfb: new Histogram({
      name: 'gateway_ttfb_seconds',
      help: 'Time from the dispatch to the first byte of the answer',
      labelNames: ['band'] as const,
      buckets: SECONDS,
      registers,
    }),
  };
}
