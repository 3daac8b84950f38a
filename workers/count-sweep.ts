import { Context } from '@temporalio/activity';
import {
  countOperations,
  type FailedStatus,
  type OperationCounter,
} from '../storage/objects/count-operations';
import type { StoreObserver } from '../storage/objects/observed-store';

/**
 * Counts what the sweep does to the store. It gives a page up after the last attempt of its activity, and
 * leaves it to the next sweep (docs/metrics.md#object-store). Call the observer inside that activity.
 */
export function countSweep(counter: OperationCounter): StoreObserver {
  return countOperations(counter, 'garbage-collector', statusOfFailure);
}

function statusOfFailure(): FailedStatus {
  const { attempt, retryPolicy } = Context.current().info;
  const most = retryPolicy?.maximumAttempts ?? 0;
  // 0: no limit.
  return most > 0 && attempt >= most ? 'exhausted' : 'retry';
}
