import { NightshiftError } from '../../core/errors';
import type { Config } from '../../platform/config';
import { within } from '../../platform/within';
import { table } from '../output';
import { doctorChecks } from './doctor-checks';
import { findDoctorConfig, type DoctorFlags } from './doctor-config';
import { failed, passed, type CheckResult } from './doctor-result';

/** `nightshift doctor`: a table of checks, with advice for each that failed. Exit status 1 if one failed. */
export async function runDoctor(flags: DoctorFlags): Promise<void> {
  const { config, result } = findDoctorConfig(flags);
  const results = [
    ['Node', passed(`${process.version} on ${process.platform} ${process.arch}`)] as const,
    ['settings', result] as const,
    ...(config === null ? [] : await runChecks(config)),
  ];
  const rows = results.map(([name, result]) => [stateOf(result), name, result.text]);
  process.stdout.write(`${table(rows)}\n`);
  const failures = results.filter(([, { isOk }]) => !isOk).length;
  process.stdout.write(failures === 0 ? 'all checks passed\n' : `${failures} failed\n`);
  if (failures > 0) process.exitCode = 1;
}

function stateOf({ isOk, isWarning }: CheckResult): string {
  if (!isOk) return 'FAILED';
  return isWarning === true ? 'warning' : 'ok';
}

const CHECK_TIMEOUT_MS = 15_000;

/** Runs the checks in parallel, so that their timeouts do not add up. */
function runChecks(config: Config): Promise<(readonly [string, CheckResult])[]> {
  return Promise.all(
    doctorChecks(config).map(async ({ name, run, advice, timeoutMs }) => {
      const result = await withTimeout(run(), timeoutMs).then(
        (found) => (typeof found === 'string' ? passed(found) : found),
        (error: unknown) => failed(`${oneLine(error)}. ${advice}`),
      );
      return [name, result] as const;
    }),
  );
}

function withTimeout<T>(check: Promise<T>, timeoutMs = CHECK_TIMEOUT_MS): Promise<T> {
  return within(timeoutMs, check, () => {
    throw new NightshiftError('unavailable', `no answer within ${timeoutMs / 1_000} s`);
  });
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return message.split('\n', 1)[0]?.replace(/\.$/, '') ?? '';
}
