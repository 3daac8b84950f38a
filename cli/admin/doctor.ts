import { NightshiftError } from '../../core/errors';
import type { Config } from '../../platform/config';
import { within } from '../../platform/within';
import { table } from '../output';
import { doctorChecks, passed, type CheckResult } from './doctor-checks';
import { findDoctorConfig, type DoctorFlags } from './doctor-config';

/** `nightshift doctor`: a table of checks, with advice for each that failed. Exit status 1 if one failed. */
export async function runDoctor(flags: DoctorFlags): Promise<void> {
  const { config, result } = findDoctorConfig(flags);
  const results = [
    ['Node', passed(`${process.version} on ${process.platform} ${process.arch}`)] as const,
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

/** Runs the checks in parallel, so that their timeouts do not add up. */
function runChecks(config: Config): Promise<(readonly [string, CheckResult])[]> {
  return Promise.all(
    doctorChecks(config).map(async ({ name, run, advice, timeoutMs }) => {
      const result = await withTimeout(run(), timeoutMs).then(passed, (error: unknown) => ({
        isOk: false,
        text: `${oneLine(error)}. ${advice}`,
      }));
      return [name, result] as const;
    }),
  );
}

function withTimeout(check: Promise<string>, timeoutMs = CHECK_TIMEOUT_MS): Promise<string> {
  return within(timeoutMs, check, () => {
    throw new NightshiftError('unavailable', `no answer within ${timeoutMs / 1_000} s`);
  });
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return message.split('\n', 1)[0]?.replace(/\.$/, '') ?? '';
}
