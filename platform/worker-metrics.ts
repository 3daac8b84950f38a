import { createDependencyGauge } from './dependency-watch';
import { createLabelValues } from './label-values';
import { createLimitGauges } from './limit-gauges';
import { Counter, exponentialBuckets, Gauge, Histogram, type Registry } from 'prom-client';

/** What a worker counts: jobs, permits, requests per model, tokens, the object store. */
export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** How many series there may be for names that clients choose. */
export interface SeriesLimits {
  readonly maxLabelValues?: number;
  /** Models that an operator has named: they always have series of their own. */
  readonly models?: readonly string[];
  readonly idleMs?: number;
  readonly nowMs?: () => number;
}

const MAX_LABEL_VALUES = 200;
const IDLE_MS = 3_600_000;

/** Registers the worker's metrics under the names that seed 000 and its dashboards use. */
export function createWorkerMetrics(registry: Registry, limits: SeriesLimits = {}) {
  const registers = [registry];
  return {
    ...jobMetrics(registers),
    ...modelMetrics(registers, limits),
    ...maintenanceMetrics(registers),
    ...outageMetrics(registers),
  } as const;
}

/** Series that have the name of a model, which any tenant can invent. */
function modelMetrics(registers: Registry[], limits: SeriesLimits) {
  const gone = new Set<(model: string) => void>();
  const modelLabels = createLabelValues({
    max: limits.maxLabelValues ?? MAX_LABEL_VALUES,
    reserved: limits.models ?? [],
    idleMs: limits.idleMs ?? IDLE_MS,
    nowMs: limits.nowMs ?? (() => performance.now()),
    onGone: (model) => {
      for (const metric of byModel) metric.remove({ model });
      for (const tell of gone) tell(model);
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
  /** `tell` hears of models whose series are removed. */
  const onModelGone = (tell: (model: string) => void): void => void gone.add(tell);
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
      help: 'Requests at the model servers, all models',
      registers,
    }),
    maxInflightConcurrency: new Gauge({
      name: 'processor_max_inflight_concurrency',
      help: 'The setting concurrency.global',
      registers,
    }),
    modelInflightRequests: new Gauge({
      name: 'model_inflight_requests',
      help: 'Requests at the model servers, by model',
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
      help: 'Requests that are sent again, by model',
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
      help: 'Open batches that this worker found unattended when it started, by status and action',
      labelNames: ['status', 'action'] as const,
      registers,
    }),
    orphansRecovered: new Counter({
      name: 'batch_reconciler_orphans_recovered_total',
      help: 'Open batches without a running workflow that got one again, and cancels told again',
      labelNames: ['action'] as const,
      registers,
    }),
    reconcilerCycle: new Histogram({
      name: 'batch_reconciler_cycle_duration_seconds',
      help: 'From the start of a reconcile to its last page',
      buckets: exponentialBuckets(0.1, 3, 10),
      registers,
    }),
    reconcilerErrors: new Counter({
      name: 'batch_reconciler_errors_total',
      help: 'Batches, or pages of them, that could not be reconciled in one cycle',
      registers,
    }),
    swept: new Counter({
      name: 'batch_sweeper_removed_total',
      help: 'Things removed because nobody needs them any more, by kind',
      labelNames: ['kind'] as const,
      registers,
    }),
  };
}

/** What tells an operator why work waits. */
function outageMetrics(registers: Registry[]) {
  return {
    gatewayBreakerOpen: new Gauge({
      name: 'gateway_breaker_open',
      help: '1 while a model server is taken for away and only probed',
      labelNames: ['gateway'] as const,
      registers,
    }),
    progressWriteFailures: new Counter({
      name: 'progress_write_failures_total',
      help: 'Ticks of progress that PostgreSQL did not take; chunks go on',
      registers,
    }),
    dependencyUp: createDependencyGauge(registers),
  };
}
