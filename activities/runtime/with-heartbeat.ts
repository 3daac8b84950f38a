import { asFailure } from './failure';
import { startHeartbeat, type Heartbeat } from './heartbeat';

/**
 * Runs an activity that takes long: heartbeats while it works, and throws its errors as the failures
 * that Temporal retries or not.
 */
export async function withHeartbeat<T>(work: (heartbeat: Heartbeat) => Promise<T>): Promise<T> {
  const heartbeat = startHeartbeat();
  try {
    return await work(heartbeat);
  } catch (error) {
    throw asFailure(error);
  } finally {
    heartbeat.stop();
  }
}
