import { CancellationScope, condition, sleep } from '@temporalio/workflow';
import type { StopControl } from './stop';

/**
 * Runs `work` to its end, or, once a stop is requested, for at most `graceMs` more: then it is cancelled,
 * nobody waits for it, and the answer is null. An activity whose worker dies again and again, or that
 * never heartbeats, cannot hold up a stop.
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
