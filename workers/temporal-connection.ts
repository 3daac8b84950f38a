import { NativeConnection, type Worker } from '@temporalio/worker';
import { connectionOptions } from '../client/connection-options';
import { watchCredentials } from '../client/credential-watch';
import {
  readCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from '../client/temporal-credentials';
import { NightshiftError, isNightshiftError } from '../core/errors';
import type { Logger } from '../platform/logger';

export interface WorkerConnectionOptions {
  readonly config: TemporalConfig;
  readonly logger: Logger;
  /** How often changed certificates and keys are looked for. */
  readonly everyMs?: number;
}

/** The connection that all workers of the process share. */
export interface WorkerConnection {
  readonly first: NativeConnection;
  /** From now on, changed credentials reach these workers without a restart. */
  follow(workers: readonly Worker[]): void;
  /** After the workers have ended. */
  close(): Promise<void>;
}

const TEMPORAL_WAIT_MS = 60_000;

/**
 * Connects, with a minute of patience: Temporal may come up after us.
 * @throws temporal_unavailable, config_invalid
 */
export async function openWorkerConnection(
  options: WorkerConnectionOptions,
): Promise<WorkerConnection> {
  const { config, logger, everyMs } = options;
  const initial = readCredentials(config);
  const first = await connectPatiently(config, logger);
  let current = first;
  let workers: readonly Worker[] = [];
  const use = async (
    next: TemporalCredentials,
    { tls }: { readonly tls: boolean },
  ): Promise<void> => {
    if (!tls) return current.setApiKey(next.apiKey ?? '');
    const old = current;
    current = await connect(config, next);
    // Polls under way end on the old connection; everything after them goes over the new one.
    for (const worker of workers) worker.connection = current;
    await old.close();
  };
  let watch = { close: (): void => undefined };
  return {
    first,
    follow: (all) => {
      workers = all;
      const every = everyMs === undefined ? {} : { everyMs };
      watch = watchCredentials({ config, initial, use, logger, ...every });
    },
    close: async () => {
      watch.close();
      await current.close();
    },
  };
}

async function connectPatiently(config: TemporalConfig, logger: Logger): Promise<NativeConnection> {
  const untilMs = Date.now() + TEMPORAL_WAIT_MS;
  for (;;) {
    try {
      return await connect(config, readCredentials(config));
    } catch (cause) {
      if (isNightshiftError(cause, 'config_invalid')) throw cause;
      if (Date.now() >= untilMs) {
        throw new NightshiftError(
          'temporal_unavailable',
          `No Temporal server answers at ${config.address}. Start one, or set temporal.address (TEMPORAL_ADDRESS).`,
          { cause },
        );
      }
      logger.warn({ address: config.address }, 'temporal does not answer yet');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

function connect(
  config: TemporalConfig,
  credentials: TemporalCredentials,
): Promise<NativeConnection> {
  const { address, apiKey, tls } = connectionOptions(config, credentials);
  return NativeConnection.connect({
    ...(address === undefined ? {} : { address }),
    ...(typeof apiKey === 'string' ? { apiKey } : {}),
    tls: tls ?? false,
  });
}
