import { loadConfig, redactUrl, type Config } from '../platform/config';
import { createLogger } from '../platform/logger';
import { say } from './output';
import { rooms } from './rooms';
import { serve } from './serve';

interface ConfigFlag {
  readonly config?: string;
}

interface MigrateFlags extends ConfigFlag {
  readonly skipNamespace?: boolean;
}

interface ApiFlags extends ConfigFlag {
  readonly port?: number;
  readonly host?: string;
}

/** `nightshift api`: serves until a signal. */
export async function runApiCommand(flags: ApiFlags): Promise<void> {
  const { port, host } = flags;
  const config = read(flags, { api: { port, host } });
  const { runApi } = rooms.api();
  const logger = createLogger(config.log, 'api');
  await serve({ name: 'api', logger, start: () => runApi(config) });
}

/** `nightshift worker`: works until a signal. */
export async function runWorkerCommand(flags: ConfigFlag): Promise<void> {
  const config = read(flags);
  const { runWorker } = rooms.worker();
  const logger = createLogger(config.log, 'worker');
  await serve({ name: 'worker', logger, start: () => runWorker(config) });
}

/** `nightshift migrate`: tables, search attributes, retention of the namespace, schedules. Idempotent. */
export async function runMigrateCommand(flags: MigrateFlags): Promise<void> {
  const config = loadConfig({ ...fileOf(flags), needs: ['postgres'] });
  const pool = rooms.pool().openPool(config.postgres.url);
  try {
    await rooms.migrate().migrate(pool, config.postgres.grants);
  } finally {
    await pool.end();
  }
  say(`tables are up to date: ${redactUrl(config.postgres.url)}`);
  const { namespace, address } = config.temporal;
  if (flags.skipNamespace === true) {
    say(
      `namespace ${namespace} of ${address} is left as it is; nightshift doctor says what it lacks`,
    );
    return;
  }
  await rooms.namespace().prepareNamespace(config.temporal);
  await rooms.schedules().prepareSchedules(config.temporal);
  say(`namespace ${namespace} of ${address} is up to date`);
}

function read(flags: ConfigFlag, overrides: Record<string, unknown> = {}): Config {
  return loadConfig({ ...fileOf(flags), overrides, needs: ['gateway', 'postgres'] });
}

function fileOf({ config }: ConfigFlag): { file?: string } {
  return config === undefined ? {} : { file: config };
}
