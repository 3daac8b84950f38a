/**
 * The statuses of a batch, as in the API (docs/design/api-contract.md#batch-lifecycle), and the
 * transitions between them.
 *
 * | from        | to                                                    |
 * |-------------|-------------------------------------------------------|
 * | validating  | in_progress, finalizing, failed, expired, cancelling  |
 * | in_progress | finalizing, failed, expired, cancelling               |
 * | finalizing  | completed, failed, expired, cancelling                |
 * | cancelling  | cancelled                                             |
 *
 * `validating → finalizing` exists because the workflow does not wait for the write of `in_progress`. If
 * that write is late, the write of `finalizing` overtakes it. `cancelling` never becomes `completed`, and
 * a terminal status never changes.
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

/** Statuses that never change. */
export const TERMINAL_STATUSES = ['completed', 'failed', 'expired', 'cancelled'] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

/** Statuses of batches that have not ended. */
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

/** Statuses from which `to` may be written; every SQL statement that sets a status checks it. */
export function legalPredecessors(to: BatchStatus): BatchStatus[] {
  return BATCH_STATUSES.filter((from) => NEXT[from].includes(to));
}

/** Whether the batch has ended. */
export function isTerminal(status: BatchStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly BatchStatus[]).includes(status);
}

/**
 * Why a batch ends before all its lines are answered. The first cause that is written to the row wins
 * (docs/design/ends.md#the-first-cause).
 */
export const STOP_CAUSES = ['cancelled', 'expired', 'failed'] as const;
export type StopCause = (typeof STOP_CAUSES)[number];

/** The error code of lines that were never answered (docs/design/api-contract.md#lines-without-an-answer). */
export function unansweredCode(cause: StopCause): `batch_${StopCause}` {
  return `batch_${cause}`;
}
