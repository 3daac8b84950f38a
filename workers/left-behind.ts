import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { HeldBatch } from '../storage/postgres/batches/types';

/** What {@link countLeftBehind} needs. */
export interface LeftBehindOptions {
  readonly batches: Pick<BatchRepository, 'held' | 'live'>;
  readonly metrics: Pick<WorkerMetrics, 'startupRecovery'>;
  readonly logger: Logger;
  /** Identity of this worker in progress rows. */
  readonly worker: string;
  readonly checkAgainMs?: number;
}

/** After this time a live worker has announced itself again, which it does every 5 s. */
const CHECK_AGAIN_MS = 7_000;

/**
 * The open batches that other workers of this host hold, dead or alive. Call it before this process takes
 * work, which may be theirs. None if PostgreSQL does not answer: that must not hold up the worker.
 */
export function findHeld({ batches, worker, logger }: LeftBehindOptions): Promise<HeldBatch[]> {
  const host = worker.slice(worker.indexOf('@') + 1);
  return batches
    .held({ name: worker, host, uptimeSec: process.uptime() })
    .catch((error: unknown) => {
      logger.warn({ err: error }, 'batches of a killed worker not counted');
      return [];
    });
}

/**
 * Counts, once, those of the held batches whose worker is dead (docs/metrics.md#startup-recovery). A worker
 * that died a moment ago looks alive, so they are counted some seconds later.
 */
export async function countLeftBehind(
  options: LeftBehindOptions,
  held: readonly HeldBatch[],
  signal: AbortSignal,
): Promise<void> {
  const { batches, worker, metrics, logger, checkAgainMs = CHECK_AGAIN_MS } = options;
  if (held.length === 0) return;
  await delay(checkAgainMs, undefined, { signal, ref: false });
  const live = await batches.live([...new Set(held.map(({ holder }) => holder))], worker);
  const left = new Map(
    held.filter(({ holder }) => !live.has(holder)).map(({ id, status }) => [id, status]),
  );
  for (const status of left.values()) metrics.startupRecovery.inc({ status, action: 'resumed' });
  if (left.size > 0) logger.info({ batches: left.size }, 'open batches of a killed worker resumed');
}
