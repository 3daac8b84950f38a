import type { WorkflowState } from './orphans';

/** What reconcile has stored about earlier restarts of a batch (docs/design/ends.md#last-resort). */
export interface TriedRow {
  /** Restarts of its closed workflow in quick succession. */
  readonly restarts: number;
  readonly restartedAtSec: number | null;
}

/** After this many restarts in a row, each soon followed by the workflow's end, another one is useless. */
const MAX_RESTARTS = 3;
/** A restart within this time of the one before adds to its count. */
export const RESTARTS_TOGETHER_SEC = 600;

/**
 * Whether further restarts are useless: the workflow was found closed within ten minutes of each of three
 * restarts. Reconcile finds a closed workflow in its next cycle, up to a minute after the end.
 */
export function isRestartedInVain(row: TriedRow, workflow: WorkflowState, nowSec: number): boolean {
  if (workflow !== 'closed' || row.restartedAtSec === null) return false;
  return row.restarts >= MAX_RESTARTS && nowSec - row.restartedAtSec < RESTARTS_TOGETHER_SEC;
}

/** In each cycle, one in this many rows is checked although visibility lists its workflow as running. */
const SAMPLE = 30;
/** A workflow may be missing from visibility for this long after its start. */
const LAG_SEC = 10;

/** An open row, before Temporal is asked about its workflow; times in Unix seconds. */
export interface ListedRow {
  readonly seq: number;
  /** Whether visibility lists its workflow as running. */
  readonly isListed: boolean;
  readonly createdAtSec: number;
  readonly startedAtSec: number | null;
  readonly expiresAtSec: number;
  /** A cancel was claimed, and the workflow has not seen it. */
  readonly cancelUntaken: boolean;
}

/**
 * Whether reconcile must ask Temporal for the state of a row's workflow. Visibility may be wrong, so it
 * only saves calls and never decides. A row that is listed as running is still checked once in 30 cycles,
 * and always if its deadline and grace have passed or the workflow has not seen a cancel
 * (docs/design/ends.md#reconcile).
 */
export function mustDescribe(
  row: ListedRow,
  { nowSec, cycle, graceSec }: { nowSec: number; cycle: number; graceSec: number },
): boolean {
  if (row.cancelUntaken || nowSec >= row.expiresAtSec + graceSec) return true;
  if (row.isListed) return row.seq % SAMPLE === cycle % SAMPLE;
  return row.startedAtSec === null || nowSec - row.startedAtSec >= LAG_SEC;
}
