import { legalPredecessors, type BatchStatus } from '../../core/batch/status';

/** Whether the table of statuses allows `from → to`. */
export function isLegalTransition(from: BatchStatus, to: BatchStatus): boolean {
  return legalPredecessors(to).includes(from);
}
