import type { WorkflowState } from '../../core/batch/orphans';
import type { TerminalStatus } from '../../core/batch/status';
import type { BatchToStart } from '../../storage/postgres/batches/types';
import type { RecoveryAction } from './contract';

/** What reconcile does with the workflows of batches. The worker implements it with a Temporal client. */
export interface BatchWorkflows {
  /** The state of the latest run. Throws if the server does not answer: that is never `missing`. */
  describe(batchId: string): Promise<WorkflowState>;
  /** Ids of batches whose workflow runs, according to visibility, which lags by seconds or more. */
  listRunning(): Promise<ReadonlySet<string>>;
  /** Starts a workflow, also if an earlier run was closed. One that runs already is success. */
  start(batch: BatchToStart): Promise<void>;
  /** Signals a cancel that is claimed in the row. A closed or missing workflow is success. */
  cancel(batchId: string): Promise<void>;
  /** Terminates what is left of a workflow. A closed or missing workflow is success. */
  terminate(batchId: string): Promise<void>;
  /** Starts a late delivery. One that runs already is success. */
  deliverLater(batchId: string): Promise<void>;
}

/** Hears what reconcile does, for metrics; must not throw. */
export interface ReconcileObserver {
  recovered(action: RecoveryAction): void;
  /** A batch was ended without its workflow. */
  ended(status: TerminalStatus): void;
  /** A batch, or a page, could not be looked at or recovered. */
  failed(): void;
  cycleEnded(tookMs: number): void;
}
