import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig, type Config } from '../../platform/config';

/** Data directory unless a flag names another one. */
export const DEFAULT_DATA_DIR = '.nightshift';

/** Whether a stack runs or has run in a data directory. */
export function hasStack(dataDir: string): boolean {
  return existsSync(settingsFile(dataDir));
}

/**
 * Reads all settings of the stack in a data directory from its file. The environment is not read, because
 * it may not be the one in which the stack was started. @throws config_invalid
 */
export function stackSettings(dataDir: string): Config {
  return loadConfig({ file: settingsFile(dataDir), env: {} });
}

function settingsFile(dataDir: string): string {
  return join(dataDir, 'run', 'config.json');
}
