import { isRestartedInVain } from '../../core/batch/last-resort';
import type { OrphanVerdict, WorkflowState } from '../../core/batch/orphans';
import { judgeOrphan } from '../../core/batch/orphans';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { ReconcileAction, RecoveryAction } from './contract';
import type { BatchWorkflows } from './ports';

/** What judging a batch takes. */
export interface JudgeDeps {
  readonly workflows: Pick<BatchWorkflows, 'describe'>;
  /** How long a batch may be overdue before it is ended without its workflow. */
  readonly finalizeWindowMs: number;
}

/** What to do with a batch, and the state of its workflow. */
export type Judgement = { readonly workflow: WorkflowState } & (
  OrphanVerdict | { readonly kind: 'end' }
);

/**
 * Compares a batch with its workflow. `end`: the workflow will not end the batch, because restarts did
 * not help or it is overdue for too long (docs/design/ends.md#last-resort).
 */
export async function judgeBatch(deps: JudgeDeps, batch: OpenBatch): Promise<Judgement> {
  const isOverdue = batch.overdueMs > 0 && batch.overdueMs >= deps.finalizeWindowMs;
  // Temporal may fail for this one workflow only, which must not keep its batch open for ever.
  const judgement = await judgeWorkflow(deps, batch).catch((error: unknown) => {
    if (isOverdue) return UNKNOWN;
    throw error;
  });
  const { workflow } = judgement;
  if (isOverdue || isRestartedInVain(batch, workflow, nowSec())) return { kind: 'end', workflow };
  return judgement;
}

/** Compares a batch with its workflow, whatever was tried before. Throws if Temporal does not answer. */
export async function judgeWorkflow(
  { workflows }: Pick<JudgeDeps, 'workflows'>,
  batch: OpenBatch,
): Promise<OrphanVerdict & { readonly workflow: WorkflowState }> {
  const workflow = await workflows.describe(batch.id);
  return { ...judgeOrphan(batch, workflow, nowSec()), workflow };
}

/** Stands for a workflow that Temporal cannot describe. */
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
