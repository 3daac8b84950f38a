import { setImmediate as turn } from 'node:timers/promises';
import { asFailure } from './failure';
import { startHeartbeat, type Heartbeat } from './heartbeat';

/** How an activity heartbeats and fails. */
export interface WithHeartbeatOptions {
  /** Details of each heartbeat, given the bytes so far. */
  readonly details?: (bytes: number) => object;
  /** Sends a last heartbeat if the work fails, so that the next attempt learns how this one ended. */
  readonly beatsOnFailure?: boolean;
  /** Replaces the failure, after the last heartbeat. */
  readonly judge?: (failure: unknown) => unknown;
}

/**
 * Runs a long activity. Sends heartbeats while it works, and throws its errors as failures that tell
 * Temporal whether to retry ({@link asFailure}).
 */
export async function withHeartbeat<T>(
  work: (heartbeat: Heartbeat) => Promise<T>,
  { details, beatsOnFailure = false, judge = (failure) => failure }: WithHeartbeatOptions = {},
): Promise<T> {
  const heartbeat = startHeartbeat(details);
  try {
    return await work(heartbeat);
  } catch (error) {
    if (beatsOnFailure) {
      heartbeat.beat();
      // The SDK encodes heartbeats asynchronously, and the failure must not overtake this one.
      await turn();
    }
    throw judge(asFailure(error));
  } finally {
    heartbeat.stop();
  }
}
