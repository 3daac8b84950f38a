import { log } from '@temporalio/workflow';
import type { FinalizeInput, FinalizeResult, OpenedBatch } from '../activities/contract';
import type { RequestCounts } from '../core/batch/counts';
import type { StopCause } from '../core/batch/status';
import { isTerminal } from '../core/batch/status';
import {
  awaitReleasedActivity,
  finalizeActivity,
  recordUnfinalizedActivity,
} from './activity-policies';

/**
 * Writes the results and the end of a batch. If finalization fails for good, the end is recorded without
 * files, so that every batch ends (docs/design/ends.md#finalization-window).
 *
 * @param knownCounts what the workflow counted, for an end without files
 */
export async function finalizeBatch(
  { settings }: OpenedBatch,
  input: Omit<FinalizeInput, 'windowMs'>,
  knownCounts: () => RequestCounts,
): Promise<FinalizeResult> {
  const { batchId, cause } = input;
  try {
    const windowMs = settings.finalizeWindowMs;
    return await finalizeActivity(settings)({ ...input, windowMs });
  } catch (error) {
    log.error('finalization given up', { error: String(error) });
    const row = await recordUnfinalizedActivity({ batchId, cause });
    return {
      kind: 'done',
      status: isTerminal(row.status) ? row.status : 'failed',
      counts: knownCounts(),
      outputFileId: null,
      errorFileId: null,
    };
  }
}

/**
 * Waits until no chunk holds its row any more, or the grace of `cause` is over, so that the result files
 * contain answers that are still being written (docs/design/ends.md#waiting-for-chunks). Never rejects.
 */
export async function awaitReleased(
  { settings }: OpenedBatch,
  batchId: string,
  cause: StopCause,
): Promise<void> {
  const graceMs = cause === 'expired' ? settings.expiryGraceMs : settings.cancelGraceMs;
  await awaitReleasedActivity(settings)({ batchId, graceMs }).catch((error: unknown) =>
    log.warn('cannot tell whether chunks are still running', { error: String(error) }),
  );
}
