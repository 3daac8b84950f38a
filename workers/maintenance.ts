import { setTimeout as delay } from 'node:timers/promises';
import type { openClient } from '../client/connection';
import { prepareNamespace } from '../client/namespace';
import { createSchedules, triggerReconcile } from '../client/schedules';
import type { Config } from '../platform/config-schema';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';

/** What {@link startMaintenance} needs. */
export interface MaintenanceOptions {
  readonly config: Pick<Config, 'temporal'>;
  readonly client: ReturnType<typeof openClient>;
  readonly batches: Pick<BatchRepository, 'held' | 'live'>;
  readonly metrics: Pick<WorkerMetrics, 'startupRecovery'>;
  readonly logger: Logger;
  /** Identity of this worker in progress rows. */
  readonly worker: string;
  readonly everyMs?: number;
  readonly checkAgainMs?: number;
}

/** Running maintenance. `close` waits for the current round. */
export interface Maintenance {
  close(): Promise<void>;
}

const EVERY_MS = 60_000;
/** After this time a live worker has announced itself again, which it does every 5 s. */
const CHECK_AGAIN_MS = 7_000;

/**
 * When a worker starts, it counts the batches that a killed worker left, and triggers reconcile. Then it checks once
 * a minute that search attributes and schedules exist, because a Temporal server that lost its database
 * comes back without them (docs/design/ends.md#restart). Nothing here fails the worker.
 */
export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { client, logger } = options;
  const stop = new AbortController();
  const counted = countLeftBehind(options, stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted) logger.warn({ err: error }, 'batches of a killed worker not counted');
  });
  let isReconciled = false;
  const round = async (): Promise<void> => {
    if (await ensureSchedules(options)) isReconciled = false;
    if (!isReconciled) await triggerReconcile(client);
    isReconciled = true;
  };
  let reported = '';
  const report = (error: unknown): void => {
    // A server that denies us schedules would log the same error every minute. Log it once.
    const text = String(error);
    if (text !== reported)
      logger.warn({ err: error }, 'schedules and search attributes could not be checked');
    reported = text;
  };
  let turn = Promise.resolve();
  const next = (): void => {
    turn = turn.then(round).then(() => void (reported = ''), report);
  };
  next();
  const timer = setInterval(next, options.everyMs ?? EVERY_MS);
  timer.unref();
  return {
    close: async () => {
      clearInterval(timer);
      stop.abort();
      await Promise.all([turn, counted]);
    },
  };
}

/**
 * Counts, once, the open batches that a killed worker of this host left (docs/metrics.md#startup-recovery). A
 * worker that died a moment ago looks alive, so they are counted some seconds later.
 */
async function countLeftBehind(options: MaintenanceOptions, signal: AbortSignal): Promise<void> {
  const { batches, worker, metrics, logger, checkAgainMs = CHECK_AGAIN_MS } = options;
  const host = worker.slice(worker.indexOf('@') + 1);
  const held = await batches.held({ name: worker, host, uptimeSec: process.uptime() });
  if (held.length === 0) return;
  await delay(checkAgainMs, undefined, { signal, ref: false });
  const live = await batches.live([...new Set(held.map(({ holder }) => holder))], worker);
  const left = new Map(
    held.filter(({ holder }) => !live.has(holder)).map(({ id, status }) => [id, status]),
  );
  for (const status of left.values()) metrics.startupRecovery.inc({ status, action: 'resumed' });
  if (left.size > 0) logger.info({ batches: left.size }, 'open batches of a killed worker resumed');
}

/**
 * True if a schedule was missing, as on a new server. Search attributes come first, because the server
 * rejects a batch's workflow without them.
 */
async function ensureSchedules({ client, config, logger }: MaintenanceOptions): Promise<boolean> {
  // A failure is normal in a hosted namespace: we have no permission there, and its operators prepare it.
  await prepareNamespace(config.temporal).catch((error: unknown) =>
    logger.debug({ err: error }, 'namespace not prepared'),
  );
  return createSchedules(client);
}
