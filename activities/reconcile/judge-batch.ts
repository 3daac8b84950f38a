import { isRestartedInVain } from '../../core/batch/last-resort';
import type { OrphanVerdict, WorkflowState } from '../../core/batch/orphans';
import { judgeOrphan } from '../../core/batch/orphans';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { ReconcileAction, RecoveryAction } from './contract';
import type { BatchWorkflows } from './ports';

/** What {@link judgeBatch} needs. */
export interface JudgeDeps {
  readonly workflows: Pick<BatchWorkflows, 'describe'>;
  /** How long a batch may be overdue before it is ended without its workflow, ms. */
  readonly finalizeWindowMs: number;
}

/** What to do with a batch, and the state of its workflow. */
export type Judgement = { readonly workflow: WorkflowState } & (
  OrphanVerdict | { readonly kind: 'end' }
);

/**
 * Compares a batch with its workflow. Returns `end` if the workflow is not expected to end the batch:
 * restarts did not help, or the batch is overdue for too long (docs/design/ends.md#last-resort).
 */
export async function judgeBatch(deps: JudgeDeps, batch: OpenBatch): Promise<Judgement> {
  const isOverdue = batch.overdueMs > 0 && batch.overdueMs >= deps.finalizeWindowMs;
  // If Temporal fails for this workflow only, the batch must not stay open forever.
  const judgement = await judgeWorkflow(deps, batch).catch((error: unknown) => {
    if (isOverdue) return UNKNOWN;
    throw error;
  });
  const { workflow } = judgement;
  if (isOverdue || isRestartedInVain(batch, workflow, nowSec())) return { kind: 'end', workflow };
  return judgement;
}

/** Compares a batch with its workflow, without regard to earlier restarts. Throws if Temporal does not answer. */
export async function judgeWorkflow(
  { workflows }: Pick<JudgeDeps, 'workflows'>,
  batch: OpenBatch,
): Promise<OrphanVerdict & { readonly workflow: WorkflowState }> {
  const workflow = await workflows.describe(batch.id);
  return { ...judgeOrphan(batch, workflow, nowSec()), workflow };
}

/** The judgement if Temporal cannot describe the workflow. */
export const UNKNOWN = { kind: 'none', workflow: 'running' } as const;

/** The report of an action on a batch. */
export function actionOn(
  batch: OpenBatch,
  { workflow }: { readonly workflow: WorkflowState },
  action: RecoveryAction,
): ReconcileAction {
  return { batchId: batch.id, status: batch.status, workflow, action };
}

function nowSec(): number {
  return Math.floor(Date.now() / 1000);
}
