import { Counter, exponentialBuckets, Gauge, Histogram, type Registry } from 'prom-client';

/** Series of a worker process: its slots, permits, chunks and journal (docs/metrics.md#workers). */
export function createWorkerSeries(registers: Registry[]) {
  return {
    ...slotSeries(registers),
    chunkDuration: new Histogram({
      name: 'chunk_duration_seconds',
      help: 'One attempt at a chunk, by exit reason',
      labelNames: ['exit'] as const,
      buckets: exponentialBuckets(0.05, 2, 14),
      registers,
    }),
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
    journalFlush: new Histogram({
      name: 'journal_flush_duration_seconds',
      help: 'One write of buffered answers to the journal, until they survive a kill of the process',
      buckets: exponentialBuckets(0.0005, 2, 16),
      registers,
    }),
  };
}

function slotSeries(registers: Registry[]) {
  return {
    totalWorkers: new Gauge({
      name: 'total_workers',
      help: 'Slots of this process that can run a step of a batch',
      registers,
    }),
    activeWorkers: new Gauge({
      name: 'active_workers',
      help: 'Slots of this process in which a step of a batch runs now',
      registers,
    }),
    maxInflightConcurrency: new Gauge({
      name: 'processor_max_inflight_concurrency',
      help: 'The setting concurrency.global',
      registers,
    }),
  };
}
