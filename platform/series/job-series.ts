import { Counter, exponentialBuckets, Histogram, type Registry } from 'prom-client';

/** 0.1 s to 27 min. */
const WAIT_BUCKETS = exponentialBuckets(0.1, 2, 15);

/** Series of batches that a worker exports (docs/metrics.md#batches). */
export function createJobSeries(registers: Registry[]) {
  return {
    ...endSeries(registers),
    queueWait: new Histogram({
      name: 'job_queue_wait_duration_seconds',
      help: 'From the creation of a batch to the start of its first ingestion',
      buckets: WAIT_BUCKETS,
      registers,
    }),
    firstRequest: new Histogram({
      name: 'batch_first_request_seconds',
      help: 'From the creation of a batch to its first request to a model server',
      buckets: WAIT_BUCKETS,
      registers,
    }),
    planBuildDuration: new Histogram({
      name: 'plan_build_duration_seconds',
      help: 'Ingestion: reading, checking and planning one input file',
      labelNames: ['size_bucket'] as const,
      buckets: exponentialBuckets(0.01, 2, 14),
      registers,
    }),
  };
}

function endSeries(registers: Registry[]) {
  return {
    jobsProcessed: new Counter({
      name: 'jobs_processed_total',
      help: 'Batches that left a worker, by result and reason',
      labelNames: ['result', 'reason'] as const,
      registers,
    }),
    jobDuration: new Histogram({
      name: 'job_processing_duration_seconds',
      help: 'From the start of the first ingestion of a batch to its end, by size',
      labelNames: ['size_bucket'] as const,
      buckets: WAIT_BUCKETS,
      registers,
    }),
    endToEndLatency: new Histogram({
      name: 'batch_job_e2e_latency_seconds',
      help: 'From the creation of a batch to its end, by final status',
      labelNames: ['status'] as const,
      buckets: exponentialBuckets(1, 3, 12),
      registers,
    }),
    cancellations: new Counter({
      name: 'batch_cancellation_total',
      help: 'Batches that ended as cancelled, by the phase in which the cancel found them',
      labelNames: ['phase'] as const,
      registers,
    }),
  };
}
