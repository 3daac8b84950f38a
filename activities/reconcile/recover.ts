import { log } from '@temporalio/activity';
import type { StopCause } from '../../core/batch/status';
import { isTerminal } from '../../core/batch/status';
import { manifestKey } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { ProgressReporter } from '../../storage/postgres/progress';
import type { ReconcileAction, RecoveryAction } from './contract';
import { actionOn, judgeWorkflow, type Judgement } from './judge-batch';
import type { BatchWorkflows } from './ports';

/** What {@link recover} needs. */
export interface RecoverDeps {
  readonly batches: Pick<
    BatchRepository,
    'findOpen' | 'markStarted' | 'noteRestart' | 'claimCause'
  >;
  readonly workflows: Pick<BatchWorkflows, 'describe' | 'start' | 'cancel'>;
  readonly progress: Pick<ProgressReporter, 'awaitReleased'>;
  readonly store: Pick<ObjectStore, 'head'>;
  /** How long to wait for chunks whose workflow is gone, ms. */
  readonly graceMs: number;
}

/** For a dry run: the action that {@link recover} or an end without the workflow would take. */
export async function plannedAction(
  deps: RecoverDeps,
  batch: OpenBatch,
  judgement: Judgement,
): Promise<ReconcileAction | null> {
  switch (judgement.kind) {
    case 'none':
      return null;
    case 'end':
      return actionOn(batch, judgement, 'ended');
    case 'signal':
      return actionOn(batch, judgement, 'cancel_signalled');
    case 'start':
      return actionOn(batch, judgement, await actionOfStart(deps, batch, judgement.claim));
  }
}

/**
 * Signals a cancel again that the workflow has not taken, or starts the workflow again after older chunks
 * have released their ranges (docs/design/ends.md#restart). Null if there was nothing to do.
 */
export async function recover(
  deps: RecoverDeps,
  batch: OpenBatch,
  judgement: Judgement,
): Promise<ReconcileAction | null> {
  if (judgement.kind === 'signal') {
    await deps.workflows.cancel(batch.id);
    return actionOn(batch, judgement, 'cancel_signalled');
  }
  if (judgement.kind !== 'start') return null;
  await deps.progress.awaitReleased(batch.id, deps.graceMs);
  // Check again: during the wait the batch may have ended, or another worker may have started it.
  const now = await deps.batches.findOpen(batch.id);
  if (now === null) return null;
  const again = await judgeWorkflow(deps, now);
  if (again.kind !== 'start') return null;
  if (again.workflow === 'closed') await deps.batches.noteRestart(batch.id);
  const action = await startAgain(deps, now, again.claim);
  return action === null ? null : actionOn(now, again, action);
}

/** Null if the batch has ended meanwhile. */
async function startAgain(
  deps: RecoverDeps,
  batch: OpenBatch,
  claim: StopCause | null,
): Promise<RecoveryAction | null> {
  let action = await actionOfStart(deps, batch, claim);
  if (claim !== null && action !== 'finalized') {
    const state = await deps.batches.claimCause(batch.id, claim);
    if (!state.found || isTerminal(state.status)) return null;
    action = state.stopCause ?? claim;
  }
  await deps.workflows.start(batch);
  await deps.batches.markStarted(batch.id);
  log.info('workflow started again', { batchId: batch.id, action });
  return action;
}

async function actionOfStart(
  deps: RecoverDeps,
  batch: OpenBatch,
  claim: StopCause | null,
): Promise<RecoveryAction> {
  if (claim !== null) return (await isSettled(deps, batch)) ? 'finalized' : claim;
  return batch.stopCause ?? (batch.startSeen ? 'resumed' : 'started');
}

/**
 * Whether every line is settled, so that the batch completes. A manifest outweighs anything that happened
 * after it, such as the deadline.
 */
async function isSettled({ store }: RecoverDeps, batch: OpenBatch): Promise<boolean> {
  return isAnswered(batch) || (await store.head(manifestKey(batch.id))) !== null;
}

/** Whether the workflow found every line settled, without a cause, and began to finalize. */
export function isAnswered({ status, stopCause }: OpenBatch): boolean {
  return status === 'finalizing' && stopCause === null;
}
