import type { StopCause } from './status';

/**
 * What to do with an open row, by the state of the workflow with the same id
 * (docs/design/ends.md#reconcile).
 *
 * | workflow | row                                | verdict                               |
 * |----------|------------------------------------|---------------------------------------|
 * | running  | a cancel that it has not seen      | signal                                |
 * | running  | otherwise                          | none                                  |
 * | missing  | start never seen, younger than 15 s | none: the API is still starting it   |
 * | missing  | otherwise                          | start; past its deadline claim `expired` |
 * | closed   | any                                | start; claim `expired` past its deadline, else `failed` |
 *
 * A cause that the row already has is never replaced. The caller checks whether a complete manifest
 * forbids the claim.
 */
export function judgeOrphan(
  row: OrphanRow,
  workflow: WorkflowState,
  nowSec: number,
): OrphanVerdict {
  if (workflow === 'running') {
    const isUntaken = row.stopCause === 'cancelled' && !row.stopTaken;
    return isUntaken && isGraceOver(row.cancellingAtSec ?? row.createdAtSec, nowSec)
      ? { kind: 'signal' }
      : { kind: 'none' };
  }
  if (workflow === 'missing' && !row.startSeen && !isGraceOver(row.createdAtSec, nowSec)) {
    return { kind: 'none' };
  }
  return { kind: 'start', claim: claimFor(row, workflow, nowSec) };
}

/** The workflow of a batch at Temporal; `closed` for any reason. */
export type WorkflowState = 'running' | 'closed' | 'missing';

/** The fields of an open row that {@link judgeOrphan} needs; times in Unix seconds. */
export interface OrphanRow {
  readonly stopCause: StopCause | null;
  /** Whether the workflow has seen the cause. */
  readonly stopTaken: boolean;
  /** Whether its workflow is known to have started once. */
  readonly startSeen: boolean;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  readonly cancellingAtSec: number | null;
}

/** What reconcile does next; `claim` is the cause to write before the start, null for none. */
export type OrphanVerdict =
  | { readonly kind: 'none' }
  | { readonly kind: 'signal' }
  | { readonly kind: 'start'; readonly claim: StopCause | null };

/** The API starts and signals by itself; reconcile steps in only after this time. */
const API_GRACE_SEC = 15;

function isGraceOver(sinceSec: number, nowSec: number): boolean {
  return nowSec - sinceSec >= API_GRACE_SEC;
}

function claimFor(row: OrphanRow, workflow: WorkflowState, nowSec: number): StopCause | null {
  if (row.stopCause !== null) return null;
  if (nowSec >= row.expiresAtSec) return 'expired';
  return workflow === 'closed' ? 'failed' : null;
}
