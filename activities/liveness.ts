import { Context } from '@temporalio/activity';

const HEARTBEAT_EVERY_MS = 1_000;

/** The running activity's tie to its server. */
export interface Liveness {
  /** Bytes read so far, for the people who look at heartbeats. */
  bytes: number;
  /** Aborted when the activity is cancelled. */
  readonly signal: AbortSignal;
  /** Throws what the activity was cancelled with. */
  check(): void;
  stop(): void;
}

/**
 * Heartbeats now and every second for as long as this process turns its event loop; work in between
 * must yield. To be stopped.
 */
export function keepAlive(): Liveness {
  const context = Context.current();
  const signal = context.cancellationSignal;
  const liveness: Liveness = {
    bytes: 0,
    signal,
    check: () => signal.throwIfAborted(),
    stop: () => clearInterval(timer),
  };
  const beat = (): void => context.heartbeat({ bytes: liveness.bytes });
  const timer = setInterval(beat, HEARTBEAT_EVERY_MS);
  beat();
  return liveness;
}
