import { ApplicationFailure, patched, TimeoutFailure } from '@temporalio/workflow';
import type { ExitReason, ExecuteChunkResult } from '../activities/contract';
import type { OpenRange } from '../core/chunks/open-ranges';

/** A chunk that came back with nothing sent; `queued` is one that nobody took from its queue. */
export interface IdleChunk {
  readonly left: ExitReason | 'queued';
  /** It was the one that may wait at the server. */
  readonly waited: boolean;
}

/** Whether a chunk made no progress, by the rule that holds for its workflow. */
export function isIdle(
  range: OpenRange,
  result: ExecuteChunkResult,
  { waitsAtServer }: { waitsAtServer: boolean },
): boolean {
  const { answered, next, left } = result;
  if (!waitsAtServer) return answered === 0 && next < range.to && !handsOver(result);
  // A worker that goes down takes no further chunk: whoever takes the next one can begin at once.
  return answered === 0 && next === range.from && left !== 'drain';
}

/** As before chunks waited at the server. */
function handsOver({ left }: ExecuteChunkResult): boolean {
  return left === 'drain' && patched('no-pause-after-drain');
}

/** The chunk was taken back from a queue that nobody took it from: it never began. */
export function isUntaken(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  return cause instanceof TimeoutFailure && cause.timeoutType === 'SCHEDULE_TO_START';
}

/** The type of the failure that an activity ended with, or null where it has none. */
export function failureType(error: unknown): string | null {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof ApplicationFailure ? (cause.type ?? null) : null;
}
