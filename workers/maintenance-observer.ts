import type { MaintenanceObserver } from '../activities/reconcile-observer';
import type { WorkerMetrics } from '../platform/worker-metrics';

/** Feeds the metrics of reconcile and sweep. */
export function createMaintenanceObserver(metrics: WorkerMetrics): MaintenanceObserver {
  return {
    recovered: (action) => metrics.orphansRecovered.inc({ action }),
    failed: () => metrics.reconcilerErrors.inc(),
    cycleEnded: (tookMs) => metrics.reconcilerCycle.observe(tookMs / 1000),
    removed: (kind, count) => metrics.swept.inc({ kind }, count),
  };
}
