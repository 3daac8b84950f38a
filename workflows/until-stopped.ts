import { CancellationScope, condition, sleep } from '@temporalio/workflow';
import type { StopControl } from './stop';

/**
 * Runs `work` to its end. After a stop it has `graceMs` left. Then it is cancelled and no longer awaited,
 * and the result is null. So an activity that never heartbeats, or whose workers keep dying, cannot hold up
 * a stop (docs/design/ends.md#stop-during-ingestion).
 */
export async function untilStopped<T>(
  stop: StopControl,
  graceMs: number,
  work: () => Promise<T>,
): Promise<T | null> {
  const scope = new CancellationScope();
  const running = scope.run(work);
  running.catch(() => undefined);
  const grace = new CancellationScope();
  const over = grace.run(async () => {
    await condition(() => stop.requested);
    await sleep(graceMs, { summary: 'ingestion may finish under a stop' });
    return null;
  });
  over.catch(() => undefined);
  try {
    return await Promise.race([running, over]);
  } finally {
    grace.cancel();
    scope.cancel();
  }
}
