import { isNightshiftError } from '../../core/errors';
import { dataDirHolder } from '../../embedded/locks/data-dir-lock';
import { findSettings, loadConfig, mergeSettings, type Config } from '../../platform/config';
import { DEFAULT_DATA_DIR, hasStack, stackSettings } from '../stack/stack-settings';
import type { CheckResult } from './doctor-checks';

/** Flags that name the settings to check. */
export interface DoctorFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

/**
 * Finds the settings to check. Settings that a flag or the environment names come first. Without them it
 * is the stack in the data directory, whose settings are in no file that the user wrote.
 */
export function findDoctorConfig({ config: file, dataDir }: DoctorFlags): {
  config: Config | null;
  result: CheckResult;
} {
  const directory = dataDir ?? DEFAULT_DATA_DIR;
  try {
    const mayUseStack = dataDir !== undefined || file === undefined;
    if (
      mayUseStack &&
      hasStack(directory) &&
      (dataDir !== undefined || !namesOtherDatabase(directory))
    ) {
      const pid = dataDirHolder(directory);
      if (pid !== null) {
        return {
          config: stackSettings(directory),
          result: { isOk: true, text: `from the stack in ${directory}, pid ${pid}` },
        };
      }
      const text = `no stack is running in ${directory}: start it with nightshift dev, or name settings with --config`;
      return { config: null, result: { isOk: false, text } };
    }
    if (dataDir !== undefined) {
      const text = `no stack has run in ${dataDir}: start one with nightshift dev --data-dir ${dataDir}`;
      return { config: null, result: { isOk: false, text } };
    }
    const config = loadConfig({
      ...(file === undefined ? {} : { file }),
      needs: ['gateway', 'postgres'],
    });
    return { config, result: { isOk: true, text: file ?? 'from the environment and defaults' } };
  } catch (error) {
    if (!isNightshiftError(error, 'config_invalid')) throw error;
    return { config: null, result: { isOk: false, text: error.message } };
  }
}

/** Whether the environment names a database other than the stack's. It may name the stack's own too. */
function namesOtherDatabase(directory: string): boolean {
  if (findSettings({}, ['postgres.url']).size === 0) return false;
  const { postgres } = mergeSettings({}) as { postgres?: { url?: unknown } };
  return postgres?.url !== stackSettings(directory).postgres.url;
}
