import type { BatchStatus, TerminalStatus } from '../../core/batch/status';
import type { WorkflowState } from '../../core/batch/orphans';

/**
 * What the reconcile workflows ask of their activities. These types travel through Temporal: fields keep
 * their names (docs/design/temporal.md#wire-names).
 */
export interface ReconcileActivities {
  /** Looks at one page of open batches and recovers what needs it; `dryRun` only says what it would do. */
  reconcilePage(input: ReconcilePageInput): Promise<ReconcilePageResult>;
  /**
   * Makes the files of a batch that ended without them; its status stays
   * (docs/design/ends.md#late-delivery).
   */
  deliverLate(input: { readonly batchId: string }): Promise<LateDelivery>;
}

export interface ReconcilePageInput {
  /** Cursor: 0, or `nextSeq` of the page before. */
  readonly afterSeq: number;
  readonly dryRun: boolean;
  /** Describes the workflow of every open batch, whatever visibility says. */
  readonly thorough?: boolean;
  /** When the cycle began: the last page reports how long the cycle took. */
  readonly cycleStartedAtMs: number;
}

/** What one page found and did. */
export interface ReconcilePageResult {
  readonly examined: number;
  readonly actions: readonly ReconcileAction[];
  /** Batches that could not be looked at or recovered; the next cycle tries again. */
  readonly errors: number;
  /** Null after the last page. */
  readonly nextSeq: number | null;
}

/** What was done with one batch, or would be. */
export interface ReconcileAction {
  readonly batchId: string;
  /** Of the row, when it was looked at. */
  readonly status: BatchStatus;
  readonly workflow: WorkflowState;
  readonly action: RecoveryAction;
}

/**
 * - `started`: the workflow had never been started
 * - `resumed`: it was gone and is started again; answers in the journal are not requested again
 * - `finalized`: every line was settled; the new run only delivers
 * - `cancelled`, `expired`, `failed`: the new run delivers what there is under this cause
 * - `ended`: its workflow did not end it, so reconcile did, with its files if they could be made
 * - `cancel_signalled`: it runs, and its cancel was signalled again
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
