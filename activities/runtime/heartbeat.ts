import { Context } from '@temporalio/activity';

const HEARTBEAT_EVERY_MS = 1_000;

/** The running activity's tie to its server. */
export interface Heartbeat {
  /** Bytes read so far, for the people who look at heartbeats. */
  bytes: number;
  /** Aborted when the activity is cancelled. */
  readonly signal: AbortSignal;
  /** Throws what the activity was cancelled with. */
  check(): void;
  /** Heartbeats now. */
  beat(): void;
  stop(): void;
}

/**
 * Heartbeats now and every second for as long as this process turns its event loop; work in between
 * must yield. To be stopped. `more` is asked at each heartbeat for what the next attempt is to know.
 */
export function startHeartbeat(more: () => object = () => ({})): Heartbeat {
  const context = Context.current();
  const signal = context.cancellationSignal;
  const liveness: Heartbeat = {
    bytes: 0,
    signal,
    check: () => signal.throwIfAborted(),
    beat: () => context.heartbeat({ bytes: liveness.bytes, ...more() }),
    stop: () => clearInterval(timer),
  };
  const timer = setInterval(() => liveness.beat(), HEARTBEAT_EVERY_MS);
  liveness.beat();
  return liveness;
}
