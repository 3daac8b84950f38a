import { ApplicationFailure, patched, TimeoutFailure } from '@temporalio/workflow';
import type { ExecuteChunkResult } from '../activities/contract';
import type { ExitReason } from '../core/chunks/exit-reason';
import { EXIT_REASON } from '../core/chunks/exit-reason';
import type { Range } from '../core/range';

/** A chunk that came back without progress. */
export interface EmptyReturn {
  /** `queued`: no worker took it from its queue. */
  readonly exitReason: ExitReason | 'queued';
  /** It was the chunk that may wait at the server. */
  readonly mayWait: boolean;
}

/** Whether a chunk came back without progress. Older histories follow an older rule. */
export function isEmptyReturn(
  range: Range,
  result: ExecuteChunkResult,
  { waitsAtServer }: { waitsAtServer: boolean },
): boolean {
  const { answered, next, left: exitReason } = result;
  if (!waitsAtServer) {
    return answered === 0 && next < range.to && !goesOnElsewhere(exitReason);
  }
  // A draining worker takes no further chunk, so the next chunk runs elsewhere and can begin at once.
  return answered === 0 && next === range.from && exitReason !== EXIT_REASON.drain;
}

/** In older histories: whether the lane goes on at once, because the worker of the last chunk shuts down. */
function goesOnElsewhere(exitReason: ExitReason): boolean {
  return exitReason === EXIT_REASON.drain && patched('no-pause-after-drain');
}

/**
 * Failures that neither a retry nor a smaller chunk can mend: the batch ends as `failed` with the answers
 * it has (docs/design/ends.md#system-failure).
 */
const SYSTEM_FAILURES = ['input_missing', 'plan_unreadable', 'object_corrupt', 'config_invalid'];

/** Whether a failure of this type ends the batch. */
export function isSystemFailure(type: string | null): boolean {
  return type !== null && SYSTEM_FAILURES.includes(type);
}

/** Whether the chunk never began, because no worker took it from its queue in time. */
export function isUntaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  return cause instanceof TimeoutFailure && cause.timeoutType === 'SCHEDULE_TO_START';
}

/** The type of the failure that an activity ended with; null if it has none. */
export function failureType(error: unknown): string | null {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof ApplicationFailure ? (cause.type ?? null) : null;
}
