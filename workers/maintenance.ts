import { setTimeout as delay } from 'node:timers/promises';
import type { openClient } from '../client/connection';
import { prepareNamespace } from '../client/namespace';
import { createSchedules, triggerReconcile } from '../client/schedules';
import type { Config } from '../platform/config-schema';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { HeldBatch } from '../storage/postgres/batches/types';

export interface MaintenanceOptions {
  readonly config: Pick<Config, 'temporal'>;
  readonly client: ReturnType<typeof openClient>;
  readonly batches: Pick<BatchRepository, 'started' | 'stillHeld'>;
  readonly metrics: Pick<WorkerMetrics, 'startupRecovery'>;
  readonly logger: Logger;
  /** Name of this worker in rows of progress. */
  readonly worker: string;
  readonly everyMs?: number;
}

/** Whoever stops it waits for what it is at. */
export interface Maintenance {
  close(): Promise<void>;
}

const EVERY_MS = 60_000;
/** A worker that was killed touched nothing for longer than two of its ticks by then. */
const LOOK_AGAIN_MS = 4_000;

/**
 * What a worker does for all batches when it starts: it counts those that it resumes, and has them
 * reconciled at once. From then on it sees to it once a minute that search attributes and schedules
 * are there, for a Temporal server that lost its database comes back without them. Nothing here fails
 * the worker.
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
  let complaint = '';
  const complain = (error: unknown): void => {
    // A server that does not let us manage schedules says so every minute; the log needs it once.
    const text = String(error);
    if (text !== complaint) logger.warn({ err: error }, 'schedules not looked after');
    complaint = text;
  };
  let turn = Promise.resolve();
  const next = (): void => {
    turn = turn.then(round).then(() => void (complaint = ''), complain);
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
 * Counts, once, the open batches that nobody but this worker is at. A worker that died a moment ago
 * looks alive at first: its batches are looked at again.
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
  await delay(LOOK_AGAIN_MS, undefined, { signal, ref: false });
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

/** True where there were none: the server is new. Attributes first, no workflow of ours starts without. */
async function ensureSchedules({ client, config, logger }: MaintenanceOptions): Promise<boolean> {
  // A cloud's namespace is prepared by its operators: what we may not do, they have done.
  await prepareNamespace(config.temporal).catch((error: unknown) =>
    logger.debug({ err: error }, 'namespace not prepared'),
  );
  return createSchedules(client);
}
