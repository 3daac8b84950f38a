import { loadConfig, type Config } from '../../platform/config';
import { createLogger } from '../../platform/logger';
import { configFile, type ConfigFlag } from '../config-flag';
import { lazy } from '../lazy-modules';
import { serve } from './serve';

interface ApiFlags extends ConfigFlag {
  readonly port?: number;
  readonly host?: string;
}

interface WorkerFlags extends ConfigFlag {
  readonly roles?: readonly string[];
  readonly processes?: string;
}

/** `nightshift api`: serves until a signal. @throws config_invalid, and what the API fails with */
export async function runApiCommand(flags: ApiFlags): Promise<void> {
  const { port, host } = flags;
  const config = load(flags, { api: { port, host } });
  const { runApi } = lazy.api();
  const logger = createLogger(config.log, 'api');
  await serve({ name: 'api', logger, start: (signal) => runApi(config, { signal }) });
}

/** `nightshift worker`: works until a signal. @throws config_invalid, and what the worker fails with */
export async function runWorkerCommand(flags: WorkerFlags): Promise<void> {
  const { roles, processes } = flags;
  const config = load(flags, { worker: { roles, processes } });
  const logger = createLogger(config.log, 'worker');
  const { startWorker } = lazy.worker();
  await serve({ name: 'worker', logger, start: (signal) => startWorker(config, { signal }) });
}

function load(flags: ConfigFlag, overrides: Record<string, unknown> = {}): Config {
  return loadConfig({ ...configFile(flags), overrides, needs: ['gateway', 'postgres'] });
}
