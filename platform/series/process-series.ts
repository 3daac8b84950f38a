import { Counter, Histogram, type Registry } from 'prom-client';
import { createDependencyGauge } from '../dependency-watch';

/** Series that API and workers share (docs/metrics.md#object-store). */
export function createProcessSeries(registers: Registry[]) {
  return {
    fileStorageOperations: new Counter({
      name: 'file_storage_operations_total',
      help: 'Object store operations (store, retrieve, delete) by outcome (success, retry, exhausted)',
      labelNames: ['operation', 'component', 'status'] as const,
      registers,
    }),
    eventLoopDelay: new Histogram({
      name: 'event_loop_delay_seconds',
      help: 'Lateness of a timer of 200 ms: how long the process could not react',
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    dependencyUp: createDependencyGauge(registers),
    credentialReloads: new Counter({
      name: 'credential_reloads_total',
      help: 'Credentials read again from changed files, and checks that could not use them, by result',
      labelNames: ['credential', 'result'] as const,
      registers,
    }),
  };
}
