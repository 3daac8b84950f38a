import { spawn } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NightshiftError } from '../../core/errors';

/** What to build, and where. */
export interface GoBuildOptions {
  /** Version of the CLI, e.g. `v1.5.1`. `go install` refuses later ones: they have `replace` directives. */
  readonly version: string;
  /** File that the finished program is moved to. */
  readonly target: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  /** Called every few seconds: a build takes 4 to 9 minutes on two cores. */
  onProgress?(elapsedMs: number): void;
  readonly progressIntervalMs?: number;
  readonly timeoutMs?: number;
}

const MODULE = 'github.com/temporalio/cli/cmd/temporal';
/** Older versions cannot fetch the toolchain that the module requires. */
const OLDEST_GO = [1, 21] as const;
const BUILD_TIMEOUT_MS = 30 * 60_000;
const SHOWN_CHARACTERS = 1_500;

/** Builds the Temporal CLI. @throws unavailable without Go 1.21, or with the last lines of a failed build */
export async function buildServer(options: GoBuildOptions): Promise<void> {
  await requireGo(options.env);
  const folder = dirname(options.target);
  const draft = mkdtempSync(join(folder, 'build-'));
  const startedAt = performance.now();
  const timer = setInterval(
    () => options.onProgress?.(performance.now() - startedAt),
    options.progressIntervalMs ?? 15_000,
  );
  try {
    const env = {
      GOTOOLCHAIN: 'auto',
      ...options.env,
      CGO_ENABLED: '0',
      GOBIN: draft,
      GOFLAGS: '',
    };
    const done = await run(['install', `${MODULE}@${options.version}`], env, options);
    if (!done.ok) throw failure(`go install ${MODULE}@${options.version}: ${done.output}`);
    renameSync(join(draft, 'temporal'), options.target);
  } finally {
    clearInterval(timer);
    rmSync(draft, { recursive: true, force: true });
  }
}

async function requireGo(env: GoBuildOptions['env']): Promise<void> {
  const done = await run(['version'], env);
  const match = /go(\d+)\.(\d+)/.exec(done.output);
  if (!done.ok || match === null) throw failure('Go is not installed (go version failed)');
  const [major = 0, minor = 0] = match.slice(1).map(Number);
  if (major > OLDEST_GO[0] || minor >= OLDEST_GO[1]) return;
  throw failure(`Go ${major}.${minor} is too old: ${OLDEST_GO.join('.')} or newer is needed`);
}

interface GoRun {
  readonly ok: boolean;
  readonly output: string;
}

function run(
  args: readonly string[],
  env: GoBuildOptions['env'],
  limits: Pick<GoBuildOptions, 'timeoutMs' | 'signal'> = {},
): Promise<GoRun> {
  return new Promise((resolve) => {
    const { timeoutMs = BUILD_TIMEOUT_MS, signal } = limits;
    const child = spawn('go', args, {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      ...(signal === undefined ? {} : { signal }),
    });
    let output = '';
    const collect = (text: string): void =>
      void (output = (output + text).slice(-SHOWN_CHARACTERS));
    child.stdout.setEncoding('utf8').on('data', collect);
    child.stderr.setEncoding('utf8').on('data', collect);
    child.once('error', (error) => resolve({ ok: false, output: error.message }));
    child.once('close', (code) => resolve({ ok: code === 0, output: output.trim() }));
  });
}

function failure(message: string): NightshiftError {
  return new NightshiftError('unavailable', message);
}
