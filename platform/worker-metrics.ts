import { createDependencyGauge } from './dependency-watch';
import { createLabelValues } from './label-values';
import { createLimitGauges } from './limit-gauges';
import { Counter, exponentialBuckets, Gauge, Histogram, type Registry } from 'prom-client';

/** A worker's metrics: jobs, permits, requests per model, tokens, object store. */
export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

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
 * Registers the worker's metrics. Dashboards depend on their names
 * (docs/design/configuration.md#metric-names).
 */
export function createWorkerMetrics(registry: Registry, limits: SeriesLimits = {}) {
  const registers = [registry];
  return {
    ...jobMetrics(registers),
    ...modelMetrics(registers, limits),
    ...maintenanceMetrics(registers),
    ...outageMetrics(registers),
  } as const;
}

/** Series by model. Any tenant can invent model names, so their number is bounded. */
function modelMetrics(registers: Registry[], limits: SeriesLimits) {
  const listeners = new Set<(model: string) => void>();
  const modelLabels = createLabelValues({
    max: limits.maxLabelValues ?? MAX_LABEL_VALUES,
    reserved: limits.models ?? [],
    idleMs: limits.idleMs ?? IDLE_MS,
    nowMs: limits.nowMs ?? (() => performance.now()),
    onGone: (model) => {
      for (const metric of byModel) metric.remove({ model });
      for (const listener of listeners) listener(model);
    },
  });
  const requests = requestMetrics(registers, () => modelLabels.sweep());
  const tokens = tokenMetrics(registers);
  const { modelInflightRequests, requestDuration, requestErrors, requestRetries } = requests;
  const { promptTokens, generationTokens } = tokens;
  const byModel = [
    ...[modelInflightRequests, requestDuration, requestErrors, requestRetries],
    ...[promptTokens, generationTokens],
  ];
  /** Calls `listener` with each model whose series are removed. */
  const onModelGone = (listener: (model: string) => void): void => void listeners.add(listener);
  const modelLimits = createLimitGauges(registers, modelLabels);
  return { ...requests, ...tokens, modelLabels, modelLimits, onModelGone };
}

function jobMetrics(registers: Registry[]) {
  return {
    jobsProcessed: new Counter({
      name: 'jobs_processed_total',
      help: 'Batches that reached their end, by result and reason',
      labelNames: ['result', 'reason'] as const,
      registers,
    }),
    jobDuration: new Histogram({
      name: 'job_processing_duration_seconds',
      help: 'From the creation of a batch to its terminal state, by size',
      labelNames: ['size_bucket'] as const,
      buckets: exponentialBuckets(0.1, 2, 15),
      registers,
    }),
    queueWait: new Histogram({
      name: 'job_queue_wait_duration_seconds',
      help: 'From the creation of a batch to the start of its ingestion',
      buckets: exponentialBuckets(0.1, 2, 10),
      registers,
    }),
    planBuildDuration: new Histogram({
      name: 'plan_build_duration_seconds',
      help: 'Ingestion: reading, checking and planning one input file',
      labelNames: ['size_bucket'] as const,
      registers,
    }),
    endToEndLatency: new Histogram({
      name: 'batch_job_e2e_latency_seconds',
      help: 'From the creation of a batch to its terminal state',
      labelNames: ['status'] as const,
      buckets: exponentialBuckets(1, 3, 12),
      registers,
    }),
    fileStorageOperations: new Counter({
      name: 'file_storage_operations_total',
      help: 'Object store operations (store, retrieve, delete) by outcome (success, retry, exhausted)',
      labelNames: ['operation', 'component', 'status'] as const,
      registers,
    }),
  };
}

function requestMetrics(registers: Registry[], beforeCollecting: () => void) {
  const labelNames = ['model'] as const;
  return {
    totalWorkers: new Gauge({
      name: 'total_workers',
      help: 'Chunks this worker may execute at once',
      registers,
    }),
    activeWorkers: new Gauge({
      name: 'active_workers',
      help: 'Chunks this worker executes now',
      registers,
    }),
    inflightRequests: new Gauge({
      name: 'processor_inflight_requests',
      help: 'Requests in flight at model servers, all models',
      registers,
    }),
    maxInflightConcurrency: new Gauge({
      name: 'processor_max_inflight_concurrency',
      help: 'The setting concurrency.global',
      registers,
    }),
    modelInflightRequests: new Gauge({
      name: 'model_inflight_requests',
      help: 'Requests in flight at model servers, by model',
      labelNames,
      registers,
      collect: beforeCollecting,
    }),
    requestDuration: new Histogram({
      name: 'model_request_execution_duration_seconds',
      help: 'Time of one call to a model server',
      labelNames,
      buckets: exponentialBuckets(0.01, 2, 15),
      registers,
    }),
    requestErrors: new Counter({
      name: 'request_errors_by_model_total',
      help: 'Requests that ended without a successful answer',
      labelNames,
      registers,
    }),
    requestRetries: new Counter({
      name: 'model_request_retries_total',
      help: 'Requests that were sent again, by model',
      labelNames,
      registers,
    }),
  };
}

function tokenMetrics(registers: Registry[]) {
  const labelNames = ['model'] as const;
  return {
    promptTokens: new Counter({
      name: 'batch_request_prompt_tokens_total',
      help: 'Input tokens as reported by the model servers',
      labelNames,
      registers,
    }),
    generationTokens: new Counter({
      name: 'batch_request_generation_tokens_total',
      help: 'Output tokens as reported by the model servers',
      labelNames,
      registers,
    }),
  };
}

function maintenanceMetrics(registers: Registry[]) {
  return {
    startupRecovery: new Counter({
      name: 'batch_startup_recovery_total',
      help: 'Open batches without a workflow that this worker found when it started, by status and action',
      labelNames: ['status', 'action'] as const,
      registers,
    }),
    orphansRecovered: new Counter({
      name: 'batch_reconciler_orphans_recovered_total',
      help: 'Open batches that got their workflow back, and cancels that were sent again',
      labelNames: ['action'] as const,
      registers,
    }),
    reconcilerCycle: new Histogram({
      name: 'batch_reconciler_cycle_duration_seconds',
      help: 'Duration of one reconcile cycle',
      buckets: exponentialBuckets(0.1, 3, 10),
      registers,
    }),
    reconcilerErrors: new Counter({
      name: 'batch_reconciler_errors_total',
      help: 'Batches, or pages of batches, that could not be reconciled in a cycle',
      registers,
    }),
    swept: new Counter({
      name: 'batch_sweeper_removed_total',
      help: 'Objects and rows removed because they are no longer needed, by kind',
      labelNames: ['kind'] as const,
      registers,
    }),
  };
}

/** Metrics that show an operator why work waits. */
function outageMetrics(registers: Registry[]) {
  return {
    gatewayBreakerOpen: new Gauge({
      name: 'gateway_breaker_open',
      help: '1 while the circuit breaker of a gateway is open: only probes are sent',
      labelNames: ['gateway'] as const,
      registers,
    }),
    progressWriteFailures: new Counter({
      name: 'progress_write_failures_total',
      help: 'Progress updates that PostgreSQL did not accept; chunks continue',
      registers,
    }),
    dependencyUp: createDependencyGauge(registers),
  };
}
