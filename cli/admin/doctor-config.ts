import { isNightshiftError } from '../../core/errors';
import { dataDirHolder } from '../../embedded/locks/data-dir-lock';
import { findSettings, loadConfig, mergeSettings, type Config } from '../../platform/config';
import { configFile, type ConfigFlag } from '../config-flag';
import { configNeeds } from './config-needs';
import { DEFAULT_DATA_DIR, hasStack, stackSettings } from '../stack/stack-settings';
import { failed, passed, type CheckResult } from './doctor-result';

/** Flags that name the settings to check. */
export interface DoctorFlags extends ConfigFlag {
  readonly dataDir?: string;
}

/** The settings to check, or `null`, and the result of finding them. */
export interface FoundSettings {
  readonly config: Config | null;
  readonly result: CheckResult;
}

/**
 * Finds the settings to check: those that a flag or the environment names, otherwise those of the stack in
 * the data directory, which are in no file that the user wrote.
 */
export function findDoctorConfig(flags: DoctorFlags): FoundSettings {
  const { dataDir } = flags;
  try {
    if (usesStack(flags)) return settingsOfStack(dataDir ?? DEFAULT_DATA_DIR);
    if (dataDir !== undefined) {
      const text = `no stack has run in ${dataDir}: start one with nightshift dev --data-dir ${dataDir}`;
      return { config: null, result: failed(text) };
    }
    const sources = configFile(flags);
    const needs = configNeeds(sources);
    // Of all processes, only a gateway may do without PostgreSQL.
    if (needs.includes('gateway')) needs.push('postgres');
    const config = loadConfig({ ...sources, needs });
    return { config, result: passed(flags.config ?? 'from the environment and defaults') };
  } catch (error) {
    if (!isNightshiftError(error, 'config_invalid')) throw error;
    return { config: null, result: failed(error.message) };
  }
}

function usesStack({ config, dataDir }: DoctorFlags): boolean {
  if (dataDir !== undefined) return hasStack(dataDir);
  return (
    config === undefined && hasStack(DEFAULT_DATA_DIR) && !namesOtherDatabase(DEFAULT_DATA_DIR)
  );
}

function settingsOfStack(directory: string): FoundSettings {
  const pid = dataDirHolder(directory);
  if (pid === null) {
    const text = `no stack is running in ${directory}: start it with nightshift dev, or name settings with --config`;
    return { config: null, result: failed(text) };
  }
  const result = passed(`from the stack in ${directory}, pid ${pid}`);
  return { config: stackSettings(directory), result };
}

/** Whether the environment names a database, and it is not the stack's. */
function namesOtherDatabase(directory: string): boolean {
  if (findSettings({}, ['postgres.url']).size === 0) return false;
  const { postgres } = mergeSettings({}) as { postgres?: { url?: unknown } };
  return postgres?.url !== stackSettings(directory).postgres.url;
}
