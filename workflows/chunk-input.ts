import type { ExecuteChunkInput, PlannedModel } from '../activities/contract';
import type { Priority } from '../core/chunks/priority';
import type { Range } from '../core/range';
import type { LaneContext } from './lane-context';

/** One chunk to run. */
export interface ChunkOrder {
  readonly range: Range;
  readonly timeSliceMs: number;
  /** 95th percentile of the model's answer times so far, ms. */
  readonly p95Ms: number | null;
  readonly priority: Priority;
  /** Lines of the model without an answer, including the range. */
  readonly openInModel?: number;
  /** The range is one suspect line. */
  readonly exclusive?: boolean;
  readonly mayBePoison?: boolean;
  /** Set if the chunk may wait at the server: how many workers may die at it. */
  readonly maxCrashes?: number | undefined;
  /** The chunk that is done last in its process may end the batch. */
  readonly isLast?: boolean;
}

/** The activity input of a chunk. Optional fields are left out if they have their default. */
export function chunkInput(
  { batchId, planNonce, opened, waitsAtServer }: LaneContext,
  { model, safe }: Pick<PlannedModel, 'model' | 'safe'>,
  order: ChunkOrder,
): ExecuteChunkInput {
  const { range, timeSliceMs, p95Ms, priority, openInModel, maxCrashes } = order;
  return {
    batchId,
    planNonce,
    tenant: opened.tenant,
    endpoint: opened.endpoint,
    inputKey: opened.inputKey ?? '',
    model,
    safe,
    from: range.from,
    to: range.to,
    deadlineMs: opened.expiresAtMs,
    boxMs: timeSliceMs,
    p95Ms,
    priority,
    ...(openInModel === undefined ? {} : { openInModel }),
    ...(order.exclusive === true ? { solo: true } : {}),
    ...(order.mayBePoison === true ? { poison: true } : {}),
    ...(waitsAtServer ? { reroutes: true } : {}),
    ...(maxCrashes === undefined ? {} : { mayWait: true, maxDeaths: maxCrashes }),
    ...(opened.passesHeaders === true ? { passesHeaders: true } : {}),
    ...(order.isLast === true ? { isLast: true } : {}),
  };
}
