import type { openClient } from '../client/connection';
import { prepareNamespace } from '../client/namespace';
import { createSchedules, triggerReconcile } from '../client/schedules';
import type { Config } from '../platform/config-schema';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { ReconcileRows } from '../storage/postgres/reconcile';

export interface MaintenanceOptions {
  readonly config: Pick<Config, 'temporal'>;
  readonly client: ReturnType<typeof openClient>;
  readonly rows: Pick<ReconcileRows, 'unattended'>;
  readonly metrics: Pick<WorkerMetrics, 'startupRecovery'>;
  readonly logger: Logger;
  readonly everyMs?: number;
}

/** Whoever stops it waits for what it is at. */
export interface Maintenance {
  close(): Promise<void>;
}

const EVERY_MS = 60_000;

/**
 * What a worker does for all batches when it starts: it counts those that it resumes, and has them
 * reconciled at once. From then on it sees to it once a minute that search attributes and schedules
 * are there, for a Temporal server that lost its database comes back without them. Nothing here fails
 * the worker.
 */
export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const { logger } = options;
  let turn = Promise.resolve();
  let isFirst = true;
  const round = async (): Promise<void> => {
    await ensure(options);
    if (isFirst) await triggerReconcile(options.client);
    isFirst = false;
  };
  const next = (): void => {
    turn = turn
      .then(round)
      .catch((error: unknown) => logger.warn({ err: error }, 'schedules not looked after'));
  };
  turn = turn
    .then(() => countResumed(options))
    .catch((error: unknown) => logger.warn({ err: error }, 'resumed batches not counted'));
  next();
  const timer = setInterval(next, options.everyMs ?? EVERY_MS);
  timer.unref();
  return {
    close: () => {
      clearInterval(timer);
      return turn;
    },
  };
}

/** Once, as the worker starts: whatever has no living worker now goes on with this one. */
async function countResumed({ rows, metrics, logger }: MaintenanceOptions): Promise<void> {
  for (const { status, count } of await rows.unattended()) {
    metrics.startupRecovery.inc({ status, action: 'resumed' }, count);
    logger.info({ status, count }, 'open batches resumed');
  }
}

/** Attributes first: no workflow of ours starts without them. */
async function ensure({ client, config, logger }: MaintenanceOptions): Promise<void> {
  // A cloud's namespace is prepared by its operators: what we may not do, they have done.
  await prepareNamespace(config.temporal).catch((error: unknown) =>
    logger.debug({ err: error }, 'namespace not prepared'),
  );
  await createSchedules(client);
}
