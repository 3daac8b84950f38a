import { legalPredecessors, type BatchStatus } from '../../core/batch/status';

/** When a batch entered each status; each is written once. */
export const STATUS_TIMES = [
  'in_progress_at',
  'finalizing_at',
  'completed_at',
  'failed_at',
  'expired_at',
  'cancelling_at',
  'cancelled_at',
] as const;

/** Whether the table of statuses allows `from → to`. */
export function isLegalTransition(from: BatchStatus, to: BatchStatus): boolean {
  return legalPredecessors(to).includes(from);
}
