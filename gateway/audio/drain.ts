import { setTimeout as delay } from 'node:timers/promises';
import type { AudioPool } from './audio-pool';

/** How long a drain may take. */
export interface DrainOptions {
  /** `gateway.drain_budget`, ms. */
  readonly budgetMs: number;
  /** `shutdown_grace`: the last part of it, in which nothing is dispatched, ms. */
  readonly graceMs: number;
  readonly now: () => number;
}

const POLL_MS = 20;

/**
 * Ends the requests of a pool (docs/design/audio-scheduling.md#shutdown): what is collected is queued, the queue is
 * dispatched until it is empty or its time is over, calls that run get the grace, and the rest is cancelled.
 */
export async function drainAudio(
  pool: Pick<AudioPool, 'beginDrain' | 'closeQueue' | 'giveUpAll' | 'load'>,
  { budgetMs, graceMs, now }: DrainOptions,
): Promise<void> {
  const startMs = now();
  const waitFor = async (isDone: () => boolean, untilMs: number): Promise<void> => {
    while (!isDone() && now() < untilMs) await delay(POLL_MS);
  };
  pool.beginDrain();
  await waitFor(() => pool.load.waiting === 0, startMs + budgetMs - graceMs);
  pool.closeQueue();
  await waitFor(() => pool.load.running === 0, now() + graceMs);
  pool.giveUpAll();
}
