import { NativeConnection, type Worker } from '@temporalio/worker';
import { connectionOptions } from '../client/connection-options';
import { watchCredentials, type ReloadReports } from '../client/credential-watch';
import {
  readCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from '../client/temporal-credentials';
import { NightshiftError, isNightshiftError } from '../core/errors';
import type { Logger } from '../platform/logger';
import type { StartWait } from '../platform/start-wait';

/** How a connection is made and watched. */
export interface WorkerConnectionOptions extends Pick<ReloadReports, 'observer'> {
  readonly config: TemporalConfig;
  readonly logger: Logger;
  readonly wait: Pick<StartWait, 'until'>;
  /** How often changed certificates and keys are checked for, ms. */
  readonly everyMs?: number;
}

/** The connection that all workers of the process share. */
export interface WorkerConnection {
  readonly first: NativeConnection;
  /** Makes these workers use changed credentials without a restart. */
  follow(workers: readonly Worker[]): void;
  /** Call it after the workers have ended. */
  close(): Promise<void>;
}

/**
 * Connects, and waits for Temporal, which may start after us (docs/design/temporal.md#connection).
 * @throws temporal_unavailable, config_invalid
 */
export async function openWorkerConnection(
  options: WorkerConnectionOptions,
): Promise<WorkerConnection> {
  const { config, logger, wait, observer, everyMs } = options;
  const initial = readCredentials(config);
  const first = await wait.until({
    name: 'temporal',
    reach: () => connect(config, readCredentials(config)),
    isAway: (error) => !isNightshiftError(error, 'config_invalid'),
  });
  let current = first;
  let workers: readonly Worker[] = [];
  const use = async (
    next: TemporalCredentials,
    { tls }: { readonly tls: boolean },
  ): Promise<void> => {
    if (!tls) return current.setApiKey(next.apiKey ?? '');
    const old = current;
    current = await connect(config, next);
    // Polls in flight finish on the old connection. Later polls use the new one.
    for (const worker of workers) worker.connection = current;
    await old.close();
  };
  let watch = { close: (): void => undefined };
  return {
    first,
    follow: (all) => {
      workers = all;
      const every = everyMs === undefined ? {} : { everyMs };
      watch = watchCredentials({ config, initial, use, logger, observer, ...every });
    },
    close: async () => {
      watch.close();
      await current.close();
    },
  };
}

/** @throws temporal_unavailable */
async function connect(
  config: TemporalConfig,
  credentials: TemporalCredentials,
): Promise<NativeConnection> {
  const { address, apiKey, tls } = connectionOptions(config, credentials);
  try {
    return await NativeConnection.connect({
      ...(address === undefined ? {} : { address }),
      ...(typeof apiKey === 'string' ? { apiKey } : {}),
      tls: tls ?? false,
    });
  } catch (cause) {
    const message = `No Temporal server answers at ${config.address}. Start one, or set temporal.address (TEMPORAL_ADDRESS).`;
    throw new NightshiftError('temporal_unavailable', message, { cause });
  }
}
