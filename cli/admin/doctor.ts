import { NightshiftError, isNightshiftError } from '../../core/errors';
import { dataDirHolder } from '../../embedded/locks/data-dir-lock';
import { findSettings, loadConfig, mergeSettings, type Config } from '../../platform/config';
import { doctorChecks, type CheckResult } from './doctor-checks';
import { table } from '../output';
import { DEFAULT_DATA_DIR, hasStack, stackSettings } from '../stack/stack-settings';

/** Flags that name the settings to check. */
export interface DoctorFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

/** `nightshift doctor`: a table of checks, with advice for each that failed. Exit status 1 if one failed. */
export async function runDoctor(flags: DoctorFlags): Promise<void> {
  const { config, result } = readConfig(flags);
  const results = [
    ['Node', ok(`${process.version} on ${process.platform} ${process.arch}`)] as const,
    ['settings', result] as const,
    ...(config === null ? [] : await runChecks(config)),
  ];
  const rows = results.map(([name, { isOk, text }]) => [isOk ? 'ok' : 'FAILED', name, text]);
  process.stdout.write(`${table(rows)}\n`);
  const failed = results.filter(([, { isOk }]) => !isOk).length;
  process.stdout.write(failed === 0 ? 'all checks passed\n' : `${failed} failed\n`);
  if (failed > 0) process.exitCode = 1;
}

const CHECK_TIMEOUT_MS = 15_000;

/** In parallel, so that checks that hang do not add up. */
function runChecks(config: Config): Promise<(readonly [string, CheckResult])[]> {
  return Promise.all(
    doctorChecks(config).map(async ({ name, run, advice }) => {
      const result = await withTimeout(run()).then(ok, (error: unknown) => ({
        isOk: false,
        text: `${oneLine(error)}. ${advice}`,
      }));
      return [name, result] as const;
    }),
  );
}

/**
 * Finds the settings to check. Settings that a flag or the environment names come first. Without them it
 * is the stack in the data directory, whose settings are in no file that the user wrote.
 */
export function readConfig({ config: file, dataDir }: DoctorFlags): {
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
          result: ok(`from the stack in ${directory}, pid ${pid}`),
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
    return { config, result: ok(file ?? 'from the environment and defaults') };
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

async function withTimeout(check: Promise<string>): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new NightshiftError(
      'unavailable',
      `no answer within ${CHECK_TIMEOUT_MS / 1_000} s`,
    );
    timer = setTimeout(() => reject(error), CHECK_TIMEOUT_MS);
  });
  return Promise.race([check, late]).finally(() => clearTimeout(timer));
}

function ok(text: string): CheckResult {
  return { isOk: true, text };
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return message.split('\n', 1)[0]?.replace(/\.$/, '') ?? '';
}
