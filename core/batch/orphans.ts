import type { StopCause } from './status';

/**
 * What becomes of an open row (execution §5), by the state of the workflow that has its id.
 *
 * | workflow | row                                | verdict                               |
 * |----------|------------------------------------|---------------------------------------|
 * | running  | a cancel that it has not taken     | signal                                |
 * | running  | else                               | none                                  |
 * | missing  | start never seen, younger than 15 s | none: whoever inserted it is at work |
 * | missing  | else                               | start; past its end claim `expired`   |
 * | closed   | any                                | start; claim `expired` past its end, else `failed` |
 *
 * Nothing is claimed over a cause that the row has. Whether a complete manifest forbids the claim is
 * for the caller to look up.
 */
export function judgeOrphan(
  row: OrphanRow,
  workflow: WorkflowState,
  nowSec: number,
): OrphanVerdict {
  if (workflow === 'running') {
    const isUntaken = row.stopCause === 'cancelled' && !row.stopTaken;
    return isUntaken && isPatienceOver(row.cancellingAtSec ?? row.createdAtSec, nowSec)
      ? { kind: 'signal' }
      : { kind: 'none' };
  }
  if (workflow === 'missing' && !row.startSeen && !isPatienceOver(row.createdAtSec, nowSec)) {
    return { kind: 'none' };
  }
  return { kind: 'start', claim: claimFor(row, workflow, nowSec) };
}

/** The workflow of a batch as Temporal has it; `closed` in any way. */
export type WorkflowState = 'running' | 'closed' | 'missing';

/** The part of an open row that decides; times in Unix seconds. */
export interface OrphanRow {
  readonly stopCause: StopCause | null;
  /** Whether the workflow has heard of the cause. */
  readonly stopTaken: boolean;
  /** Whether the start of its workflow has ever been seen to work. */
  readonly startSeen: boolean;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  readonly cancellingAtSec: number | null;
}

/** What to do; `claim` is the cause to claim before the start. */
export type OrphanVerdict =
  | { readonly kind: 'none' }
  | { readonly kind: 'signal' }
  | { readonly kind: 'start'; readonly claim: StopCause | null };

/** The API starts and signals by itself at first: only then is it somebody else's turn. */
const PATIENCE_SEC = 15;

function isPatienceOver(sinceSec: number, nowSec: number): boolean {
  return nowSec - sinceSec >= PATIENCE_SEC;
}

function claimFor(row: OrphanRow, workflow: WorkflowState, nowSec: number): StopCause | null {
  if (row.stopCause !== null) return null;
  if (nowSec >= row.expiresAtSec) return 'expired';
  return workflow === 'closed' ? 'failed' : null;
}
