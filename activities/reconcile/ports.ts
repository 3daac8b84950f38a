import type { WorkflowState } from '../../core/batch/orphans';
import type { BatchToStart } from '../../storage/postgres/batches/types';
import type { RecoveryAction } from './contract';

/** The calls to Temporal that reconcile makes. The worker implements them with a Temporal client. */
export interface BatchWorkflows {
  /** The state of the latest run. If the server does not answer, it throws and never returns `missing`. */
  describe(batchId: string): Promise<WorkflowState>;
  /** Ids of batches whose workflow runs, according to visibility, which lags by seconds or more. */
  listRunning(): Promise<ReadonlySet<string>>;
  /** Starts a workflow, even if an earlier run is closed. Succeeds if one is running. */
  start(batch: BatchToStart): Promise<void>;
  /** Signals a cancel that is claimed in the row. Succeeds if the workflow is closed or missing. */
  cancel(batchId: string): Promise<void>;
  /** Terminates a workflow. Succeeds if it is closed or missing. */
  terminate(batchId: string): Promise<void>;
  /** Starts a late delivery. Succeeds if one is running. */
  deliverLater(batchId: string): Promise<void>;
}

/** Receives events of reconcile, for metrics. Must not throw. */
export interface ReconcileObserver {
  recovered(action: RecoveryAction): void;
  /** A batch, or a whole page, could not be checked or recovered. */
  failed(): void;
  cycleEnded(tookMs: number): void;
}
