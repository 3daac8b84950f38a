import type { ReconcileObserver } from '../activities/reconcile/ports';
import type { SweepObserver } from '../activities/sweep/ports';
import { END_RESULTS } from './job-metrics';
import type { WorkerMetrics } from '../platform/worker-metrics';

/** Feeds the metrics of reconcile and sweep. */
export function createMaintenanceObserver(
  metrics: WorkerMetrics,
): ReconcileObserver & SweepObserver {
  return {
    recovered: (action) => metrics.orphansRecovered.inc({ action }),
    ended: (status) => metrics.jobsProcessed.inc(END_RESULTS[status]),
    failed: () => metrics.reconcilerErrors.inc(),
    cycleEnded: (tookMs) => metrics.reconcilerCycle.observe(tookMs / 1000),
    removed: (kind, count) => metrics.swept.inc({ kind }, count),
  };
}
