import type { openClient } from '../client/connection';
import { prepareNamespace } from '../client/namespace';
import { createSchedules, triggerReconcile } from '../client/schedules';
import type { Config } from '../platform/config-schema';
import type { HeldBatch } from '../storage/postgres/batches/types';
import { countLeftBehind, type LeftBehindOptions } from './left-behind';

/** What {@link startMaintenance} needs. */
export interface MaintenanceOptions extends LeftBehindOptions {
  readonly config: Pick<Config, 'temporal'>;
  readonly client: ReturnType<typeof openClient>;
  /** What {@link findHeld} found. */
  readonly held: readonly HeldBatch[];
  readonly everyMs?: number;
}

/** Running maintenance. `close` waits for the current round. */
export interface Maintenance {
  close(): Promise<void>;
}

const EVERY_MS = 60_000;

/**
 * When a worker starts, it counts the batches that a killed worker left, and triggers reconcile. Then it
 * checks once a minute that search attributes and schedules exist, because a Temporal server that lost its
 * database comes back without them (docs/design/ends.md#restart). Nothing here fails the worker.
 */
export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { client, logger } = options;
  const stop = new AbortController();
  const counted = countLeftBehind(options, options.held, stop.signal).catch((error: unknown) => {
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
