import { NightshiftError } from '../../core/errors';
import type { Environment } from '../../platform/config';
import { findProgram, programVariable, type Inspection } from './find-program';
import { buildGoProgram, type GoModule } from './go-build';
import { programOutput } from './program-output';

/** A program that is built from a Go module, and how it is recognized. */
export interface GoProgram extends GoModule {
  /** What users call it, such as `S3 server versitygw`. */
  readonly title: string;
  /** Arguments with which any usable version prints something and succeeds. */
  readonly versionArguments: readonly string[];
  /** How long a first build takes on two cores, such as `4 minutes`. */
  readonly buildTime: string;
}

/** A program that was found, and where. */
export interface FoundProgram {
  readonly path: string;
  /** `PATH`, `cache`, `go install`, or the environment variable that names the file. */
  readonly source: string;
}

/** Where to look, and how to report progress. */
export interface FindGoProgramOptions {
  readonly env: Environment;
  /** Aborts a build. */
  readonly signal?: AbortSignal;
  /** Gets a sentence about each step that takes time. */
  say(message: string): void;
}

/**
 * Finds a Go program on the PATH or in the user's cache, or builds it into the cache.
 * @throws unavailable with everything that was tried and what to do
 */
export async function findGoProgram(
  program: GoProgram,
  { env, signal, say }: FindGoProgramOptions,
): Promise<FoundProgram> {
  const { title, version, buildTime } = program;
  const build = (target: string): Promise<void> => {
    say(`building ${title} ${version} with Go: about ${buildTime}, once`);
    const onProgress = (elapsedMs: number): void =>
      say(`still building ${title}: ${Math.round(elapsedMs / 1_000)} s`);
    return buildGoProgram({ module: program, target, env, signal, onProgress });
  };
  const found = await findProgram<FoundProgram>({
    program,
    title,
    env,
    slowSources: [{ name: 'go install', run: build }],
    signal,
    inspect: (path, source) => inspect(program, path, source),
    say,
  });
  if (found.program !== null) return found.program;
  throw nothingFound(program, found.tried);
}

async function inspect(
  { versionArguments }: GoProgram,
  path: string,
  source: string,
): Promise<Inspection<FoundProgram>> {
  const output = await programOutput(path, versionArguments).catch((error: Error) => error);
  if (output instanceof Error) return { kind: 'unusable', reason: output.message };
  return { kind: 'usable', program: { path, source } };
}

function nothingFound({ name, title }: GoProgram, tried: readonly string[]): NightshiftError {
  const lines = [
    `Found no ${title}.`,
    'Tried:',
    ...[`PATH and cache: looked for \`${name}\``, ...tried].map((line) => `  ${line}`),
    `What to do: install Go 1.21 or newer and start again, put \`${name}\` on the PATH, or set ${programVariable(name)} to its file.`,
  ];
  return new NightshiftError('unavailable', lines.join('\n'));
}
