import { continueAsNew, workflowInfo } from '@temporalio/workflow';
import type { BatchSettings, PlannedOrInvalid } from '../activities/contract';
import type { BatchInput, BatchResume } from './contract';
import type { ModelRun } from './model-run';

/** The state of a new plan: every position is open. */
export function freshResume({
  nonce,
  lineCount,
  models,
  unroutedLines,
  showsProviders,
}: PlannedOrInvalid & { kind: 'planned' }): BatchResume {
  return {
    nonce,
    lineCount,
    unroutedLines,
    models: models.map((model) => ({
      ...model,
      open: [{ from: 0, to: model.entries }],
      completed: 0,
      failed: 0,
    })),
    ...(showsProviders === true ? { showsProviders } : {}),
  };
}

/** When the batch began to run, Unix ms: its first run, not this one. */
export function startOf({ startedAtMs }: BatchResume): number {
  return startedAtMs ?? workflowInfo().startTime.getTime();
}

/**
 * Whether the batch should go on in a new run: its history is long, and a range is still open. By default
 * the server decides what counts as long (docs/design/temporal.md#continue-as-new).
 */
export function shouldHandOver(
  { historyEvents: limit }: BatchSettings,
  models: readonly ModelRun[],
): boolean {
  const { historyLength, continueAsNewSuggested } = workflowInfo();
  const isLong = limit === null ? continueAsNewSuggested : historyLength >= limit;
  return isLong && models.some(({ progress }) => !progress.open.isEmpty);
}

/** Goes on in a new run. All chunks must have returned: activities do not survive this step. */
export function handOver(
  batchId: string,
  plan: BatchResume,
  models: readonly ModelRun[],
): Promise<never> {
  const resume = {
    ...plan,
    models: models.map((model) => model.toResume()),
    startedAtMs: startOf(plan),
  };
  return continueAsNew<(input: BatchInput) => Promise<unknown>>({ batchId, resume });
}
