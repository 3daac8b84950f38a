import { join } from 'node:path';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { readHolder } from '../../embedded/locks/lock-file';
import { findSettings, loadConfig, mergeSettings, type Config } from '../../platform/config';
import { doctorChecks, type CheckResult } from './doctor-checks';
import { table } from '../output';
import { hasStack, stackSettings } from '../stack/stack-settings';

/** How the doctor finds what it looks at. */
export interface DoctorFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

const USUAL_DATA_DIR = '.nightshift';

/** `nightshift doctor`: a table of what works and what to do about the rest; exit status 1 with any. */
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
  process.stdout.write(failed === 0 ? 'all is well\n' : `${failed} failed\n`);
  if (failed > 0) process.exitCode = 1;
}

const CHECK_TIMEOUT_MS = 15_000;

/** Side by side: one that hangs costs its own time only. */
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
 * Settings that are named win. Without any, the stack that runs in the data directory is looked at: its
 * settings are in no file that the user wrote.
 */
export function readConfig({ config: file, dataDir }: DoctorFlags): {
  config: Config | null;
  result: CheckResult;
} {
  const place = dataDir ?? USUAL_DATA_DIR;
  try {
    const isWanted = dataDir !== undefined || file === undefined;
    if (isWanted && hasStack(place) && (dataDir !== undefined || !isAnotherNamed(place))) {
      const pid = readHolder(join(place, 'lock'));
      if (pid !== null) {
        return { config: stackSettings(place), result: ok(`of the stack in ${place}, pid ${pid}`) };
      }
      const text = `no stack is running in ${place}: start it with nightshift dev, or name settings with --config`;
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

/** The stack itself may have been started in an environment that names its database. */
function isAnotherNamed(place: string): boolean {
  if (findSettings({}, ['postgres.url']).size === 0) return false;
  const { postgres } = mergeSettings({}) as { postgres?: { url?: unknown } };
  return postgres?.url !== stackSettings(place).postgres.url;
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
