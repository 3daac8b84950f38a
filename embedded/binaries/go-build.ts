import { execFile } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import type { Environment } from '../../platform/config';
import type { ProgramVersion } from './program-cache';

/** The Go package of a program. */
export interface GoModule extends ProgramVersion {
  /** Import path of the `main` package, whose last element is the program's name. */
  readonly package: string;
  /**
   * Set if the module's `go.mod` has `replace` or `exclude` directives, which `go install` refuses. Then an
   * empty module requires it, and the directives do not apply.
   */
  readonly needsWrapper?: boolean;
  /** Build tags, for programs of which only a part is needed. */
  readonly tags?: readonly string[];
}

/** What to build, and where. */
export interface GoBuildOptions {
  readonly module: GoModule;
  /** File that the finished program is moved to. */
  readonly target: string;
  readonly env: Environment;
  readonly signal?: AbortSignal | undefined;
  /** Called every few seconds: a build takes minutes. */
  onProgress?(elapsedMs: number): void;
  readonly progressIntervalMs?: number;
  readonly timeoutMs?: number;
}

/** Older versions cannot fetch the toolchain that a module requires. */
const OLDEST_GO = [1, 21] as const;
const BUILD_TIMEOUT_MS = 30 * 60_000;
const MAX_OUTPUT_BYTES = 16_000_000;
const SHOWN_CHARACTERS = 1_500;

/** Builds a Go program. @throws unavailable without Go 1.21, or with the last lines of a failed build */
export async function buildGoProgram(options: GoBuildOptions): Promise<void> {
  await requireGo(options.env);
  const { module, target } = options;
  const draft = mkdtempSync(join(dirname(target), 'build-'));
  const startedAt = performance.now();
  const timer = setInterval(
    () => options.onProgress?.(performance.now() - startedAt),
    options.progressIntervalMs ?? 15_000,
  );
  try {
    await (module.needsWrapper === true ? buildInWrapper : install)(options, draft);
    renameSync(join(draft, module.name), target);
  } finally {
    clearInterval(timer);
    rmSync(draft, { recursive: true, force: true });
  }
}

async function install(options: GoBuildOptions, draft: string): Promise<void> {
  const { module } = options;
  await runGo(['install', `${module.package}@${module.version}`], options, draft);
}

async function buildInWrapper(options: GoBuildOptions, draft: string): Promise<void> {
  const { module } = options;
  writeFileSync(join(draft, 'go.mod'), 'module build.invalid/wrapper\n\ngo 1.21\n');
  await runGo(['get', `${module.package}@${module.version}`], options, draft);
  await runGo(['build', '-o', join(draft, module.name), module.package], options, draft);
}

/** Runs Go in the draft folder, which is also where `go install` puts the program. */
async function runGo(
  args: readonly string[],
  options: GoBuildOptions,
  draft: string,
): Promise<void> {
  const { tags = [] } = options.module;
  const env = {
    GOTOOLCHAIN: 'auto',
    ...options.env,
    CGO_ENABLED: '0',
    GOBIN: draft,
    GOFLAGS: tags.length > 0 ? `-tags=${tags.join(',')}` : '',
    GOWORK: 'off',
  };
  const done = await run(args, env, { ...options, cwd: draft });
  if (!done.ok) throw failure(`go ${args.join(' ')}: ${done.output}`);
}

async function requireGo(env: Environment): Promise<void> {
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
  env: Environment,
  limits: Pick<GoBuildOptions, 'timeoutMs' | 'signal'> & { readonly cwd?: string } = {},
): Promise<GoRun> {
  const { timeoutMs: timeout = BUILD_TIMEOUT_MS, signal, cwd } = limits;
  return new Promise((resolve) => {
    // `spawn` would leave its timer behind if there is no Go, and keep this process alive.
    execFile(
      'go',
      args,
      { env, timeout, signal, cwd, maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        const output = (stdout + stderr).trim().slice(-SHOWN_CHARACTERS);
        resolve({ ok: error === null, output: output || (error?.message ?? '') });
      },
    );
  });
}

function failure(message: string): NightshiftError {
  return new NightshiftError('unavailable', message);
}
