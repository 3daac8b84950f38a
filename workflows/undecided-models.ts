import { log } from '@temporalio/workflow';
import type { ExecuteChunkResult } from '../activities/contract';
import { summaryText } from '../core/batch/temporal-bounds';
import { PRIORITY } from '../core/chunks/priority';
import type { Range } from '../core/range';
import { endUnroutedActivity } from './activity-policies';
import { chunkInput } from './chunk-input';
import { failureType } from './chunk-outcome';
import type { LaneContext } from './lane-context';
import { isHalted, pause } from './lane-context';
import type { ModelRun } from './model-run';

/** Lines that one activity ends: a second or two of work. */
const MAX_LINES = 10_000;

/**
 * Decides models that no worker could send when the file was read. If a worker has a gateway for a model by
 * now, the model runs like any other. Otherwise its lines end as `model_not_found`. Models are decided one
 * after the other, so that a batch occupies only one slot of the batch queue. Never rejects
 * (docs/design/batch-path.md#unknown-models).
 */
export async function settleUndecided(
  models: readonly ModelRun[],
  context: LaneContext,
): Promise<void> {
  const running: Promise<void>[] = [];
  for (const model of models) {
    if (await becomesRouted(model, context)) running.push(model.run());
  }
  await Promise.all(running);
}

/** Ends the model's lines. True as soon as a worker has a gateway for the model. */
async function becomesRouted(model: ModelRun, context: LaneContext): Promise<boolean> {
  for (let pauses = 0; !isHalted(context);) {
    const range = model.progress.open.take(MAX_LINES);
    if (range === null) return false;
    const result = await endUnrouted(model, range, context);
    if (result === 'failed') return false;
    if (result === 'routed') {
      log.info('the model has a route by now', { model: model.plan.model });
      model.isUndecided = false;
      context.onRouted();
      return true;
    }
    // Another attempt has the range, or the worker shuts down. Trying again at once would gain nothing.
    if (result.next === range.from) await pause(context, pauses++);
  }
  return false;
}

async function endUnrouted(
  model: ModelRun,
  range: Range,
  context: LaneContext,
): Promise<ExecuteChunkResult | 'routed' | 'failed'> {
  const { plan, progress } = model;
  const summary = summaryText(`no gateway serves ${plan.model} [${range.from}, ${range.to})`);
  const order = { range, timeSliceMs: 0, p95Ms: null, priority: PRIORITY.normal };
  try {
    const execute = endUnroutedActivity(context.opened.settings, summary);
    const result = await execute(chunkInput(context, plan, order));
    if (result === null) {
      progress.open.giveBack(range);
      return 'routed';
    }
    progress.settle(range, result);
    if (result.stopCause !== null) context.stop.request(result.stopCause);
    context.onChange();
    return result;
  } catch (error) {
    progress.open.giveBack(range);
    // During a stop the attempt's worker may still be writing.
    if (context.stop.requested) model.progress.isUnaccounted = true;
    else fail(model, error, context);
    return 'failed';
  }
}

/** Ends the batch as failed. The activity's policy retries what can be retried, so this failure is final. */
function fail(model: ModelRun, error: unknown, { stop }: LaneContext): void {
  log.error('batch cannot go on', { type: failureType(error), model: model.plan.model });
  stop.request('failed');
}
