import { setTimeout as delay } from 'node:timers/promises';
import type { openClient } from '../client/connection';
import { prepareNamespace } from '../client/namespace';
import { createSchedules, triggerReconcile } from '../client/schedules';
import type { Config } from '../platform/config-schema';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { HeldBatch } from '../storage/postgres/batches/types';

/** What {@link startMaintenance} needs. */
export interface MaintenanceOptions {
  readonly config: Pick<Config, 'temporal'>;
  readonly client: ReturnType<typeof openClient>;
  readonly batches: Pick<BatchRepository, 'started' | 'stillHeld'>;
  readonly metrics: Pick<WorkerMetrics, 'startupRecovery'>;
  readonly logger: Logger;
  /** Identity of this worker in progress rows. */
  readonly worker: string;
  readonly everyMs?: number;
}

/** Running maintenance. `close` waits for the current round. */
export interface Maintenance {
  close(): Promise<void>;
}

const EVERY_MS = 60_000;
/** After this time a killed worker has missed more than two of its one-second ticks. */
const CHECK_AGAIN_MS = 4_000;

/**
 * When a worker starts, it counts the batches that it resumes and triggers reconcile. Then it checks once
 * a minute that search attributes and schedules exist, because a Temporal server that lost its database
 * comes back without them (docs/design/ends.md#restart). Nothing here fails the worker.
 */
export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { client, logger } = options;
  const stop = new AbortController();
  const counted = countResumed(options, stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted) logger.warn({ err: error }, 'resumed batches not counted');
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
 * Counts, once, the open batches that no other worker works on. A worker that died a moment ago still
 * looks alive, so its batches are checked again after a few seconds.
 */
async function countResumed(options: MaintenanceOptions, signal: AbortSignal): Promise<void> {
  const { batches, worker } = options;
  const found = await batches.started(worker);
  const doubtful = found.filter(({ holders }) => holders.length > 0);
  count(
    options,
    found.filter(({ holders }) => holders.length === 0),
  );
  if (doubtful.length === 0) return;
  await delay(CHECK_AGAIN_MS, undefined, { signal, ref: false });
  const held = await batches.stillHeld(doubtful);
  count(
    options,
    doubtful.filter(({ id }) => !held.has(id)),
  );
}

function count({ metrics, logger }: MaintenanceOptions, resumed: readonly HeldBatch[]): void {
  for (const { status } of resumed) metrics.startupRecovery.inc({ status, action: 'resumed' });
  if (resumed.length > 0) logger.info({ batches: resumed.length }, 'open batches resumed');
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
