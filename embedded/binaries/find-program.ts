import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Environment } from '../../platform/config';
import { withBuildLock } from './build-lock';
import { cachedProgram, type ProgramVersion } from './program-cache';

/** Whether a file is the program that is looked for, or why it is not. */
export type Inspection<T> =
  | { readonly kind: 'usable'; readonly program: T }
  | { readonly kind: 'unusable'; readonly reason: string };

/** A way to get a program that takes minutes. */
export interface SlowSource {
  /** Such as `download` or `go install`. */
  readonly name: string;
  /** Writes the program to `target`, whole or not at all. */
  run(target: string): Promise<void>;
}

/** What to look for, and how to get it. */
export interface ProgramSearch<T> {
  /** Name of the file, and the version that the slow sources give. */
  readonly program: ProgramVersion;
  /** What users call it, such as `Temporal server`. */
  readonly title: string;
  readonly env: Environment;
  /** Tried in this order if no file is found. */
  readonly slowSources: readonly SlowSource[];
  /** Aborts a slow source, and the wait for another process. */
  readonly signal?: AbortSignal | undefined;
  /** Runs the file, for example with `--version`. Must not throw. */
  inspect(path: string, source: string): Promise<Inspection<T>>;
  /** Gets a sentence about each step that takes time. */
  say(message: string): void;
}

/** The program, or null and what was tried, a line for each attempt. */
export interface ProgramSearchResult<T> {
  readonly program: T | null;
  readonly tried: readonly string[];
}

/** The environment variable that names a program's file: `NIGHTSHIFT_<NAME>_PATH`. */
export function programVariable(name: string): string {
  return `NIGHTSHIFT_${name.toUpperCase()}_PATH`;
}

/**
 * Finds a program at the cheapest source: the PATH, the user's cache, then the slow sources. What a slow
 * source gives stays in the cache, so each machine pays once. A file that is not usable is skipped with a
 * note. If the environment variable names a file, only that one counts
 * (docs/design/embedded-stack.md#programs).
 *
 * @throws the reason of an abort
 */
export async function findProgram<T>(search: ProgramSearch<T>): Promise<ProgramSearchResult<T>> {
  const tried: string[] = [];
  const chosen = search.env[programVariable(search.program.name)];
  if (chosen !== undefined && chosen !== '') {
    const source = programVariable(search.program.name);
    return { program: await usable(search, { path: chosen, source }, tried), tried };
  }
  for (const candidate of candidates(search)) {
    const program = await usable(search, candidate, tried);
    if (program !== null) return { program, tried };
  }
  return { program: await fromSlowSources(search, tried), tried };
}

/** A file that may be the program. */
interface Candidate {
  readonly path: string;
  readonly source: string;
}

function candidates({
  program,
  env,
}: Pick<ProgramSearch<unknown>, 'program' | 'env'>): Candidate[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [
    ...folders.map((folder) => ({ path: join(folder, program.name), source: 'PATH' })),
    { path: cachedProgram(program, env), source: 'cache' },
  ].filter(({ path }) => existsSync(path) && statSync(path).isFile());
}

async function usable<T>(
  search: ProgramSearch<T>,
  { path, source }: Candidate,
  tried: string[],
): Promise<T | null> {
  const inspected = await search.inspect(path, source);
  if (inspected.kind === 'usable') return inspected.program;
  tried.push(`${source}: ${inspected.reason}`);
  return null;
}

async function fromSlowSources<T>(search: ProgramSearch<T>, tried: string[]): Promise<T | null> {
  if (search.slowSources.length === 0) return null;
  const target = cachedProgram(search.program, search.env);
  // Private: no other user may put a program there that we would run.
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  const onWait = (pid: number): void =>
    search.say(`process ${pid} is getting the ${search.title}: waiting for it`);
  const { signal } = search;
  return withBuildLock(join(dirname(target), 'lock'), { signal, onWait }, async () => {
    // Another process may have put it there while this one waited.
    const late = existsSync(target)
      ? await usable(search, { path: target, source: 'cache' }, [])
      : null;
    if (late !== null) return late;
    removeDrafts(dirname(target));
    for (const source of search.slowSources) {
      const program = await trySource(search, source, target, tried);
      if (program !== null) return program;
    }
    return null;
  });
}

/** What slow sources write until they are done; those of living processes need the lock that we hold. */
const DRAFT = /^(?:build|unpack)-/;

/** Removes what killed processes have left: up to 150 MB each. */
function removeDrafts(folder: string): void {
  for (const name of readdirSync(folder).filter((entry) => DRAFT.test(entry))) {
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

async function trySource<T>(
  search: ProgramSearch<T>,
  source: SlowSource,
  target: string,
  tried: string[],
): Promise<T | null> {
  const { title, say, signal } = search;
  const { name } = source;
  say(`no ${title} on the PATH or in the cache: trying ${name}`);
  try {
    await source.run(target);
  } catch (error) {
    signal?.throwIfAborted();
    tried.push(`${name}: ${(error as Error).message}`);
    say(`${name} failed: ${(error as Error).message}`);
    return null;
  }
  return usable(search, { path: target, source: name }, tried);
}
