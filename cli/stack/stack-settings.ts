import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig, type Config } from '../../platform/config';

/** Whether a stack runs, or has run, in a data directory. */
export function hasStack(dataDir: string): boolean {
  return existsSync(settingsFile(dataDir));
}

/**
 * The settings that the stack in a data directory runs with. They are complete: the environment, which
 * may be another one than the stack was started in, has no say. @throws config_invalid
 */
export function stackSettings(dataDir: string): Config {
  return loadConfig({ file: settingsFile(dataDir), env: {} });
}

function settingsFile(dataDir: string): string {
  return join(dataDir, 'run', 'config.json');
}
