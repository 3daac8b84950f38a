import type { RecoveryAction } from '../activities/reconcile/contract';
import type { WorkerMetrics } from '../platform/worker-metrics';

const RESULTS: Readonly<Record<string, readonly string[]>> = {
  success: ['none'],
  cancelled: ['none'],
  failed: ['invalid_input', 'system_error'],
  expired: ['expired_dequeue', 'expired_execution'],
  skipped: ['not_runnable_state', 'db_inconsistency'],
  re_enqueued: ['none', 'guard_shutdown', 'db_transient'],
};

const ACTIONS: Readonly<Record<RecoveryAction, true>> = {
  started: true,
  resumed: true,
  finalized: true,
  cancelled: true,
  expired: true,
  failed: true,
  ended: true,
  cancel_signalled: true,
};

/**
 * Shows the series of rare events with 0. Without a sample before the first event, Prometheus does not see an
 * increase, and an alert would miss it (docs/metrics.md#reading-the-tables).
 */
export function beginAtZero(
  metrics: Pick<WorkerMetrics, 'jobsProcessed' | 'orphansRecovered'>,
): void {
  for (const [result, reasons] of Object.entries(RESULTS)) {
    for (const reason of reasons) metrics.jobsProcessed.inc({ result, reason }, 0);
  }
  for (const action of Object.keys(ACTIONS)) metrics.orphansRecovered.inc({ action }, 0);
}
