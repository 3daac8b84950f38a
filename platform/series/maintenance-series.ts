import { Counter, exponentialBuckets, Histogram, type Registry } from 'prom-client';

/** Series of startup recovery, reconcile and sweep (docs/metrics.md#maintenance). */
export function createMaintenanceSeries(registers: Registry[]) {
  return {
    startupRecovery: new Counter({
      name: 'batch_startup_recovery_total',
      help: 'Open batches that a killed worker of this host left, found when this worker started',
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
    rowsLost: new Counter({
      name: 'batch_sweeper_lost_rows_total',
      help: 'Searches of the sweep that found a batch in the object store without its row',
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
