/**
 * Life of a batch (contract §2.3, seed 000), with the words of the wire.
 *
 * | from        | to                                                    |
 * |-------------|-------------------------------------------------------|
 * | validating  | in_progress, finalizing, failed, expired, cancelling  |
 * | in_progress | finalizing, failed, expired, cancelling               |
 * | finalizing  | completed, failed, expired, cancelling                |
 * | cancelling  | cancelled                                             |
 *
 * `validating → finalizing` covers the `in_progress` projection, which nobody waits for: where it is
 * late, the next one overtakes it. `cancelling` never becomes `completed`; terminal never changes.
 */
export const BATCH_STATUSES = [
  'validating',
  'in_progress',
  'finalizing',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const;

export type BatchStatus = (typeof BATCH_STATUSES)[number];

/** Statuses that never change again. */
export const TERMINAL_STATUSES = ['completed', 'failed', 'expired', 'cancelled'] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

/** Statuses of batches that still have a way to go. */
export const OPEN_STATUSES = ['validating', 'in_progress', 'finalizing', 'cancelling'] as const;

const NEXT: Readonly<Record<BatchStatus, readonly BatchStatus[]>> = {
  validating: ['in_progress', 'finalizing', 'failed', 'expired', 'cancelling'],
  in_progress: ['finalizing', 'failed', 'expired', 'cancelling'],
  finalizing: ['completed', 'failed', 'expired', 'cancelling'],
  cancelling: ['cancelled'],
  completed: [],
  failed: [],
  expired: [],
  cancelled: [],
};

/** Whether the table above allows `from → to`. */
export function isLegalTransition(from: BatchStatus, to: BatchStatus): boolean {
  return NEXT[from].includes(to);
}

/** Statuses from which `to` may be written: the guard of every status statement. */
export function legalPredecessors(to: BatchStatus): BatchStatus[] {
  return BATCH_STATUSES.filter((from) => NEXT[from].includes(to));
}

/** Whether `status` never changes again. */
export function isTerminal(status: BatchStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly BatchStatus[]).includes(status);
}

/**
 * Why a batch ends before all its lines are answered; the first cause is decided in its row
 * (execution §4).
 */
export const STOP_CAUSES = ['cancelled', 'expired', 'failed'] as const;
export type StopCause = (typeof STOP_CAUSES)[number];

/** Code of a line that was never answered, by the cause of the end (contract §7.1). */
export function unansweredCode(cause: StopCause): `batch_${StopCause}` {
  return `batch_${cause}`;
}
