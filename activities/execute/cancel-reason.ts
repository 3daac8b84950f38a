import type { Context } from '@temporalio/activity';

/**
 * Why Temporal cancelled an attempt. `stop`: the batch stops. `drain`: this worker shuts down and its
 * drain budget is over. `superseded`: the server no longer knows the attempt or has timed it out, so
 * another one has the range (docs/design/temporal.md#cancellation-reasons).
 */
export type CancelReason = 'stop' | 'drain' | 'superseded';

/** The reason, once the activity of `context` is cancelled. */
export function cancelReasonOf(context: Context): CancelReason {
  const details = context.cancellationDetails;
  if (details?.workerShutdown === true) return 'drain';
  if (details?.notFound === true || details?.timedOut === true) return 'superseded';
  return 'stop';
}
