import type { WorkflowState } from './orphans';

/** What reconcile remembers of an open batch (docs/design/ends.md#last-resort). */
export interface TriedRow {
  /** Restarts of its closed workflow in quick succession. */
  readonly restarts: number;
  readonly restartedAtSec: number | null;
}

/** A workflow that ends soon after this many restarts in a row will not end its batch. */
const MAX_RESTARTS = 3;
/** Restarts within this time of each other count together. */
export const RESTARTS_TOGETHER_SEC = 600;

/**
 * Whether further restarts are useless: the workflow was found closed within minutes of each of three
 * restarts. Reconcile finds it at its next cycle, up to a minute after its end.
 */
export function isRestartedInVain(row: TriedRow, workflow: WorkflowState, nowSec: number): boolean {
  if (workflow !== 'closed' || row.restartedAtSec === null) return false;
  return row.restarts >= MAX_RESTARTS && nowSec - row.restartedAtSec < RESTARTS_TOGETHER_SEC;
}

/** In each cycle, one of this many rows is checked although visibility says that it runs. */
const SAMPLE = 30;
/** How far visibility may lag behind. */
const LAG_SEC = 10;

/** An open row before its workflow is described; times in Unix seconds. */
export interface ListedRow {
  readonly seq: number;
  readonly isListed: boolean;
  readonly createdAtSec: number;
  readonly startedAtSec: number | null;
  readonly expiresAtSec: number;
  readonly cancelUntaken: boolean;
}

/**
 * Whether the workflow of a row must be described. Visibility may be wrong, so it only saves calls and
 * never decides: a row that is listed as running is still checked once in 30 cycles, and as soon as
 * something is due (docs/design/ends.md#reconcile).
 */
export function isSuspect(
  row: ListedRow,
  { nowSec, cycle, graceSec }: { nowSec: number; cycle: number; graceSec: number },
): boolean {
  if (row.cancelUntaken || nowSec >= row.expiresAtSec + graceSec) return true;
  if (row.isListed) return row.seq % SAMPLE === cycle % SAMPLE;
  return row.startedAtSec === null || nowSec - row.startedAtSec >= LAG_SEC;
}
