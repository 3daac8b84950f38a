import { CancellationScope, log } from '@temporalio/workflow';
import type { OpenedBatch, SmallBatchResult } from '../activities/contract';
import { firstTimeSliceMs, timeSliceMs } from '../core/chunks/time-slice';
import { smallBatchActivity } from './activity-policies';
import type { BatchResume } from './contract';
import { freshResume } from './hand-over';
import type { StopControl } from './stop';

/** Patch id of workflows that let one activity do all of a small batch. */
export const SMALL_AT_ONCE = 'small-batch-at-once';

/**
 * Lets one activity do all of a small batch, or as much as can be done at once. A stop cancels it like a chunk. Null if
 * it failed: whatever it has done is found by the steps that follow. Never rejects
 * (docs/design/execution.md#small-batches).
 */
export async function runSmallBatch(
  batchId: string,
  opened: OpenedBatch,
  stop: StopControl,
): Promise<SmallBatchResult | null> {
  const { tenant, endpoint, inputKey, expiresAtMs, settings, small, passesHeaders } = opened;
  const scope = new CancellationScope();
  stop.attach(scope);
  const slice = timeSliceMs({ batchAgeMs: 0, p95Ms: 0 });
  const boxMs = firstTimeSliceMs(slice, 0, 1);
  const run = smallBatchActivity({
    settings,
    timeSliceMs: boxMs,
    requestTimeoutMs: small?.requestTimeoutMs ?? 0,
  });
  const input = {
    ...{ batchId, tenant, endpoint, inputKey: inputKey ?? '', deadlineMs: expiresAtMs, boxMs },
    ...(passesHeaders === true ? { passesHeaders } : {}),
  };
  try {
    return await scope.run(() => run(input));
  } catch (error) {
    log.warn('a small batch goes on step by step', { batchId, error: String(error) });
    return null;
  }
}

/** What is left of a small batch; null if its file was refused. */
export function restOf({ plan, chunk }: SmallBatchResult): BatchResume | null {
  if (plan.kind === 'invalid') return null;
  const resume = freshResume(plan);
  if (chunk === undefined) return resume;
  const { next, completed, failed } = chunk;
  const models = resume.models.map((model) => ({
    ...model,
    open: next < model.entries ? [{ from: next, to: model.entries }] : [],
    completed,
    failed,
  }));
  return { ...resume, models };
}
