import { log } from '@temporalio/workflow';
import { summaryText } from '../core/batch/temporal-bounds';
import type { Range } from '../core/range';
import { failureType } from './chunk-outcome';
import { delegatedPart, type DelegatedPlan } from './delegated-input';
import { settlePartActivity } from './delegate-policies';
import type { LaneContext } from './lane-context';
import { isHalted, pause } from './lane-context';
import type { ModelProgress } from './model-progress';

/** Lines that one activity ends: a second or two of work. */
const MAX_LINES = 10_000;

/** A model whose provider does no more, and that has no gateway. */
export interface LeftoverModel {
  readonly plan: DelegatedPlan;
  readonly progress: ModelProgress;
}

/** Ends the lines that no provider answered with their error codes. Never rejects. */
export async function settleLeftovers(model: LeftoverModel, context: LaneContext): Promise<void> {
  for (let pauses = 0; !isHalted(context);) {
    const range = model.progress.open.take(MAX_LINES);
    if (range === null) return;
    const next = await settle(model, range, context);
    if (next === null) return;
    // Another attempt has the range, or the worker shuts down. Trying again at once would gain nothing.
    if (next === range.from) await pause(context, pauses++);
  }
}

/** The lowest position that is still open; null if the batch cannot go on. */
async function settle(
  { plan, progress }: LeftoverModel,
  range: Range,
  context: LaneContext,
): Promise<number | null> {
  const summary = summaryText(`end ${plan.model} [${range.from}, ${range.to})`);
  const settlePart = settlePartActivity({ settings: context.opened.settings, summary });
  try {
    const result = await settlePart({
      ...delegatedPart(context, plan),
      from: range.from,
      to: range.to,
    });
    progress.settle(range, result);
    if (result.stopCause !== null) context.stop.request(result.stopCause);
    context.onChange();
    return result.next;
  } catch (error) {
    progress.open.giveBack(range);
    // During a stop the attempt's worker may still be writing.
    if (context.stop.requested) progress.isUnaccounted = true;
    else {
      log.error('batch cannot go on', { type: failureType(error), model: plan.model });
      context.stop.request('failed');
    }
    return null;
  }
}
