import type { ReconcileObserver } from '../activities/reconcile/ports';
import type { SweepObserver } from '../activities/sweep/ports';
import type { WorkerMetrics } from '../platform/worker-metrics';

/** Feeds the metrics of reconcile and sweep. */
export function createMaintenanceObserver(
  metrics: WorkerMetrics,
): ReconcileObserver & SweepObserver {
  return {
    recovered: (action) => metrics.orphansRecovered.inc({ action }),
    failed: () => metrics.reconcilerErrors.inc(),
    cycleEnded: (tookMs) => metrics.reconcilerCycle.observe(tookMs / 1000),
    rowsLost: () => metrics.rowsLost.inc(),
    removed: (kind, count) => metrics.swept.inc({ kind }, count),
  };
}
