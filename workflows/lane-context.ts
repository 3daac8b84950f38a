import { condition } from '@temporalio/workflow';
import type { FinalizeResult, OpenedBatch } from '../activities/contract';
import type { StopControl } from './stop';

/** What all models of a batch share while they execute. */
export interface LaneContext {
  readonly batchId: string;
  readonly planNonce: string;
  readonly opened: OpenedBatch;
  readonly stop: StopControl;
  /** When the batch began, Unix ms: time slices grow with its age. */
  readonly startedAtMs: number;
  /**
   * Whether one chunk of a model waits at the server for all lanes, routes are looked up again, and chunks
   * come back from a queue that no worker serves. False in older histories.
   */
  readonly waitsAtServer: boolean;
  /** The routes in the plan were looked up in this run. */
  readonly routesAreFresh: boolean;
  /** Models without a route are looked up again before their lines are given up. */
  readonly decidesLater: boolean;
  /** Whether nothing is left to hand out once this chunk is, so that its worker may end the batch. */
  isAllHandedOut(): boolean;
  /** Called if a chunk has ended the batch. */
  onEnded(end: FinalizeResult): void;
  /** True once the history is long enough for a new run: lanes take no further chunk. */
  handingOver(): boolean;
  /** Called when a model without a route has got one. */
  onRouted(): void;
  /** Called after each chunk, to update the details for operators. */
  onChange(): void;
}

/** Whether lanes must take no further chunk: the batch stops, or goes on in a new run. */
export function isHalted({ stop, handingOver }: LaneContext): boolean {
  return stop.requested || handingOver();
}

const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/**
 * Pauses for 1 s, doubling with each round to 30 s. The pause ends early when lanes are halted or `isOver`
 * is true.
 */
export async function pause(
  context: LaneContext,
  round: number,
  isOver: () => boolean = () => false,
): Promise<void> {
  const pauseMs = Math.min(PAUSE_MIN_MS * 2 ** round, PAUSE_MAX_MS);
  try {
    await condition(() => isHalted(context) || isOver(), pauseMs);
  } catch {
    // A stop cancels the pause, and then the lane checks for a stop. Do not rethrow: if the lane was
    // started late, `ModelLanes.run` does not await it yet, and an unhandled rejection fails the workflow
    // task again and again.
  }
}
