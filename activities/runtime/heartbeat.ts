import { Context } from '@temporalio/activity';

const HEARTBEAT_EVERY_MS = 1_000;

/** The heartbeats of the running activity. */
export interface Heartbeat {
  /** Bytes processed so far, for operators who look at the heartbeat. */
  bytes: number;
  /** Aborts when the activity is cancelled. The worker learns of it from the answer to a heartbeat. */
  readonly signal: AbortSignal;
  /** Throws the cancellation if the activity is cancelled. */
  check(): void;
  /** Sends a heartbeat now. */
  beat(): void;
  stop(): void;
}

/**
 * Sends a heartbeat now and every second, until it is stopped. An activity that is tried once sends none at once: no
 * next attempt needs its details, and most such activities are over before the second is. Long work must yield to the event loop, or
 * no heartbeat is sent (docs/design/temporal.md#heartbeats).
 *
 * @param details of each heartbeat, given the bytes so far; the next attempt reads the last ones
 */
export function startHeartbeat(
  details: (bytes: number) => object = (bytes) => ({ bytes }),
): Heartbeat {
  const context = Context.current();
  const signal = context.cancellationSignal;
  const heartbeat: Heartbeat = {
    bytes: 0,
    signal,
    check: () => signal.throwIfAborted(),
    beat: () => context.heartbeat(details(heartbeat.bytes)),
    stop: () => clearInterval(timer),
  };
  const timer = setInterval(() => heartbeat.beat(), HEARTBEAT_EVERY_MS);
  if (context.info.retryPolicy?.maximumAttempts !== 1) heartbeat.beat();
  return heartbeat;
}
