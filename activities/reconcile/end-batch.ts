import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { ProgressReporter } from '../../storage/postgres/progress';
import type { ReconcileAction } from './contract';
import { endWithoutWorkflow, type EndDeps } from './end-without-workflow';
import { actionOn, judgeWorkflow, UNKNOWN } from './judge-batch';
import type { BatchWorkflows } from './ports';
import { isAnswered } from './recover';

/** What {@link endBatch} needs. */
export interface EndBatchDeps extends EndDeps {
  readonly batches: EndDeps['batches'] & Pick<BatchRepository, 'findOpen' | 'resetOverdue'>;
  readonly workflows: EndDeps['workflows'] & Pick<BatchWorkflows, 'describe'>;
  readonly progress: Pick<ProgressReporter, 'awaitReleased'>;
  /** How long to wait for chunks whose workflow is gone. */
  readonly graceMs: number;
}

const MAX_GRACE_MS = 60_000;

/**
 * Ends a batch that its workflow does not end (docs/design/ends.md#last-resort). Null if it has ended by
 * itself. `check` throws to give up.
 */
export async function endBatch(
  deps: EndBatchDeps,
  batch: OpenBatch,
  check: () => void,
): Promise<ReconcileAction | null> {
  await deps.progress.awaitReleased(batch.id, Math.min(deps.graceMs, MAX_GRACE_MS));
  const now = await deps.batches.findOpen(batch.id);
  if (now === null) return null;
  const ownCause = Date.now() / 1000 >= now.expiresAtSec ? 'expired' : 'failed';
  const cause = now.stopCause ?? (isAnswered(now) ? null : ownCause);
  try {
    const status = await endWithoutWorkflow(deps, now.id, { cause, check });
    if (status === null) return null;
  } catch (error) {
    // Try again when the batch is overdue again, not in every cycle.
    await deps.batches.resetOverdue(batch.id);
    throw error;
  }
  return actionOn(now, await judgeWorkflow(deps, now).catch(() => UNKNOWN), 'ended');
}
