import { GatewayError, isGatewayError } from '../core/errors';
import { loadConfig, type Config } from '../platform/config';
import { doctorChecks, type CheckResult } from './doctor-checks';
import { table } from './output';

interface ConfigFlag {
  readonly config?: string;
}

/** `nightshift doctor`: a table of what works and what to do about the rest; exit status 1 with any. */
export async function runDoctor({ config: file }: ConfigFlag): Promise<void> {
  const { config, result } = readConfig(file);
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

function readConfig(file: string | undefined): { config: Config | null; result: CheckResult } {
  try {
    const config = loadConfig({
      ...(file === undefined ? {} : { file }),
      needs: ['gateway', 'postgres'],
    });
    return { config, result: ok(file ?? 'from the environment and defaults') };
  } catch (error) {
    if (!isGatewayError(error, 'config_invalid')) throw error;
    return { config: null, result: { isOk: false, text: error.message } };
  }
}

async function withTimeout(check: Promise<string>): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new GatewayError('unavailable', `no answer within ${CHECK_TIMEOUT_MS / 1_000} s`);
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
