import { condition, log } from '@temporalio/workflow';
import type { ExecuteChunkResult } from '../activities/contract';
import { summaryText } from '../core/batch/temporal-bounds';
import type { OpenRange } from '../core/chunks/open-ranges';
import { failureType } from './chunk-outcome';
import type { LaneContext, ModelLanes } from './model-lanes';
import { unrouted } from './proxies';

/** Lines that one activity ends: a second or two of work. */
const MAX_LINES = 10_000;
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;
const NORMAL_PRIORITY = 3;

/**
 * The last word on models that no worker could send when the file was read. Their lines end as
 * `model_not_found` unless a worker has a gateway for them by now: then they run like any other. One
 * after the other, so that a batch takes one slot of its queue. Never rejects.
 */
export async function settleUndecided(
  models: readonly ModelLanes[],
  context: LaneContext,
): Promise<void> {
  const running: Promise<void>[] = [];
  for (const model of models) {
    if (await turnsOutRouted(model, context)) running.push(model.run());
  }
  await Promise.all(running);
}

async function turnsOutRouted(model: ModelLanes, context: LaneContext): Promise<boolean> {
  for (let idle = 0; !halted(context);) {
    const range = model.open.take(MAX_LINES);
    if (range === null) return false;
    const result = await endUnrouted(model, range, context);
    if (result === 'failed') return false;
    if (result === 'routed') {
      log.info('the model has a route by now', { model: model.plan.model });
      model.isUndecided = false;
      context.onRouted();
      return true;
    }
    // Nothing is gained by asking at once: another attempt has the range, or a worker goes down.
    if (result.next === range.from) await pause(context, idle++);
  }
  return false;
}

type Ended = ExecuteChunkResult | 'routed' | 'failed';

async function endUnrouted(
  model: ModelLanes,
  range: OpenRange,
  context: LaneContext,
): Promise<Ended> {
  try {
    const result = await unrouted(context.opened.settings, summaryOf(model, range)).endUnrouted(
      inputOf(model, range, context),
    );
    if (result === null) {
      model.open.giveBack(range);
      return 'routed';
    }
    record(model, range, result, context);
    return result;
  } catch (error) {
    model.open.giveBack(range);
    // Under a stop its worker may still be writing.
    if (context.stop.requested) model.unaccounted = true;
    else fail(model, error, context);
    return 'failed';
  }
}

/** What can be tried again is, by the activity's policy; this cannot. */
function fail(model: ModelLanes, error: unknown, { stop }: LaneContext): void {
  log.error('batch cannot go on', { type: failureType(error), model: model.plan.model });
  stop.request('failed');
}

function record(
  model: ModelLanes,
  range: OpenRange,
  result: ExecuteChunkResult,
  { stop, onChange }: LaneContext,
): void {
  model.open.giveBack({ from: result.next, to: range.to });
  model.completed += result.completed;
  model.failed += result.failed;
  model.lastExit = result.left;
  const { stopCause } = result;
  if (stopCause !== null) stop.observe({ found: true, status: 'in_progress', stopCause });
  onChange();
}

function inputOf(
  { plan: { model, safe } }: ModelLanes,
  { from, to }: OpenRange,
  { batchId, nonce, opened }: LaneContext,
) {
  return {
    batchId,
    planNonce: nonce,
    tenant: opened.tenant,
    endpoint: opened.endpoint,
    inputKey: opened.inputKey ?? '',
    model,
    safe,
    from,
    to,
    deadlineMs: opened.expiresAtMs,
    boxMs: 0,
    p95Ms: null,
    priority: NORMAL_PRIORITY,
  };
}

function summaryOf({ plan: { model } }: ModelLanes, { from, to }: OpenRange): string {
  return summaryText(`no gateway serves ${model} [${from}, ${to})`);
}

function halted({ stop, handingOver }: LaneContext): boolean {
  return stop.requested || handingOver();
}

async function pause(context: LaneContext, idle: number): Promise<void> {
  const pauseMs = Math.min(PAUSE_MIN_MS * 2 ** idle, PAUSE_MAX_MS);
  // A stop cancels the pause.
  await condition(() => halted(context), pauseMs).catch(() => undefined);
}
