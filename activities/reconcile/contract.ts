import type { BatchStatus, TerminalStatus } from '../../core/batch/status';
import type { WorkflowState } from '../../core/batch/orphans';

/**
 * The activities of reconcile and late delivery. These types travel through Temporal, so fields keep their
 * names (docs/design/temporal.md#wire-names).
 */
export interface ReconcileActivities {
  /** Checks one page of open batches and recovers them if needed. With `dryRun` it only reports. */
  reconcilePage(input: ReconcilePageInput): Promise<ReconcilePageResult>;
  /**
   * Makes the files of a batch that ended without them. The status of the batch does not change
   * (docs/design/ends.md#late-delivery).
   */
  deliverLate(input: { readonly batchId: string }): Promise<LateDelivery>;
}

export interface ReconcilePageInput {
  /** Cursor: 0, or `nextSeq` of the previous page. */
  readonly afterSeq: number;
  readonly dryRun: boolean;
  /** Describes the workflow of every open batch, instead of trusting visibility. */
  readonly thorough?: boolean;
  /** When the cycle began, Unix ms. The last page reports how long the cycle took. */
  readonly cycleStartedAtMs: number;
}

/** What one page found and did. */
export interface ReconcilePageResult {
  readonly examined: number;
  readonly actions: readonly ReconcileAction[];
  /** Batches that could not be checked or recovered. The next cycle tries again. */
  readonly errors: number;
  /** Null after the last page. */
  readonly nextSeq: number | null;
}

/** What was done with a batch or, in a dry run, what would be done. */
export interface ReconcileAction {
  readonly batchId: string;
  /** Status of the row when it was checked. */
  readonly status: BatchStatus;
  readonly workflow: WorkflowState;
  readonly action: RecoveryAction;
}

/**
 * - `started`: the workflow had never been started
 * - `resumed`: the workflow was gone and is started again; answered requests are not sent again
 * - `finalized`: every line was settled; the new run only makes the files
 * - `cancelled`, `expired`, `failed`: the new run ends the batch with this cause and the existing answers
 * - `ended`: the workflow did not end the batch, so reconcile did, with its files if they could be made
 * - `cancel_signalled`: the workflow runs, and the cancel was signalled again
 */
export type RecoveryAction =
  | 'started'
  | 'resumed'
  | 'finalized'
  | 'cancelled'
  | 'expired'
  | 'failed'
  | 'ended'
  | 'cancel_signalled';

/** How a late delivery ended; `delivered` is false if the batch had files before. */
export interface LateDelivery {
  readonly status: TerminalStatus;
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
  readonly delivered: boolean;
}
