import type { WorkflowState } from './orphans';

/** What reconcile remembers of an open batch. */
export interface TriedRow {
  /** Restarts of its closed workflow, one soon after the other. */
  readonly restarts: number;
  readonly restartedAtSec: number | null;
}

/** A workflow that ends soon after its restart, this often in a row, will not end its batch. */
const MAX_RESTARTS = 3;
/** Restarts within this time of each other count together. */
export const RESTARTS_TOGETHER_SEC = 600;

/**
 * Whether restarting is of no use any more: the workflow was found closed within minutes of each of three
 * restarts. It is found at the next look, up to a minute after its end.
 */
export function isRestartedInVain(row: TriedRow, workflow: WorkflowState, nowSec: number): boolean {
  if (workflow !== 'closed' || row.restartedAtSec === null) return false;
  return row.restarts >= MAX_RESTARTS && nowSec - row.restartedAtSec < RESTARTS_TOGETHER_SEC;
}

/** One of so many rows that visibility says run is looked at in each cycle, whatever it says. */
const SAMPLE = 30;
/** Visibility may lag so far behind. */
const LAG_SEC = 10;

/** An open row before its workflow is looked at; times in Unix seconds. */
export interface ListedRow {
  readonly seq: number;
  readonly isListed: boolean;
  readonly createdAtSec: number;
  readonly startedAtSec: number | null;
  readonly expiresAtSec: number;
  readonly cancelUntaken: boolean;
}

/**
 * Whether the workflow of a row has to be asked for. Visibility saves calls and decides nothing: a row that
 * it says runs is asked for once in 30 cycles, and as soon as something is due with it.
 */
export function isSuspect(
  row: ListedRow,
  { nowSec, cycle, graceSec }: { nowSec: number; cycle: number; graceSec: number },
): boolean {
  if (row.cancelUntaken || nowSec >= row.expiresAtSec + graceSec) return true;
  if (row.isListed) return row.seq % SAMPLE === cycle % SAMPLE;
  return row.startedAtSec === null || nowSec - row.startedAtSec >= LAG_SEC;
}
