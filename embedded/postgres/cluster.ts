import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchownSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import type { PostgresBinaries } from './binaries';
import type { RunAs } from './run-as';

/** The database of one data directory. */
export interface Cluster {
  readonly data: string;
  readonly password: string;
}

/** Where the database is, and who runs it. */
export interface ClusterOptions {
  readonly binaries: PostgresBinaries;
  readonly runAs: RunAs;
  /** Folder that `runAs` can write. */
  readonly folder: string;
  /** File with the password, in the data directory and readable by its owner only. */
  readonly passwordFile: string;
  /** Whether `folder` is outside the data directory, and so outlives it. */
  readonly isOutside: boolean;
  say(message: string): void;
}

/** Role and database of an embedded stack. */
export const DATABASE_USER = 'nightshift';
export const DATABASE_NAME = 'nightshift';

/**
 * Opens the existing database, or creates one with a random password and the empty database `nightshift`.
 *
 * @throws postgres_unavailable if another major version created it, or if it cannot be created
 */
export function openCluster(options: ClusterOptions): Cluster {
  const data = join(options.folder, 'data');
  moveOrphanAway(options, data);
  if (!existsSync(join(data, 'PG_VERSION'))) makeCluster(options, data);
  const major = Number(readFileSync(join(data, 'PG_VERSION'), 'utf8'));
  if (major !== options.binaries.major) throw otherVersion(data, major, options.binaries.major);
  return { data, password: readPassword(options.passwordFile, data) };
}

/** Moves away a database whose data directory was deleted: its password was deleted too. */
function moveOrphanAway({ isOutside, passwordFile, say }: ClusterOptions, data: string): void {
  if (!isOutside || existsSync(passwordFile) || !existsSync(data)) return;
  const aside = `${data}.of-deleted-directory.${Date.now()}`;
  renameSync(data, aside);
  say(`the data directory is new: the database of the deleted one was moved to ${aside}`);
}

/** Creates the database in a draft folder and renames that at the end, so no partial database remains. */
function makeCluster(
  { binaries, runAs, folder, passwordFile }: ClusterOptions,
  data: string,
): void {
  const draft = join(folder, 'data.new');
  const initdbPasswordFile = join(folder, 'password.new');
  rmSync(draft, { recursive: true, force: true });
  const password = randomBytes(24).toString('hex');
  writeInitdbPassword(initdbPasswordFile, password, runAs);
  const makeArgs = [
    ...['-D', draft, '-U', DATABASE_USER, '--pwfile', initdbPasswordFile],
    ...['--auth', 'scram-sha-256', '--encoding', 'UTF8', '--no-locale', '--no-instructions'],
  ];
  runOnce({ command: binaries.initdb, args: makeArgs, runAs, folder });
  const single = ['--single', '-D', draft, 'postgres'];
  const input = `create database ${DATABASE_NAME}\n`;
  runOnce({ command: binaries.postgres, args: single, runAs, folder, input });
  rmSync(initdbPasswordFile);
  // The password comes first: a database whose password is lost is useless.
  writeFileSync(passwordFile, password, { mode: 0o600 });
  renameSync(draft, data);
}

/**
 * Writes the password for `initdb`. The folder belongs to the other user, who could have put a link there:
 * `wx` creates a new file and follows no link.
 */
function writeInitdbPassword(file: string, password: string, { uid, gid }: RunAs): void {
  rmSync(file, { force: true });
  const fd = openSync(file, 'wx', 0o600);
  try {
    writeSync(fd, `${password}\n`);
    if (uid !== undefined && gid !== undefined) fchownSync(fd, uid, gid);
  } finally {
    closeSync(fd);
  }
}

interface Run {
  readonly command: string;
  readonly args: readonly string[];
  readonly runAs: RunAs;
  readonly folder: string;
  readonly input?: string;
}

function runOnce({ command, args, runAs, folder, input = '' }: Run): void {
  const done = spawnSync(command, args, {
    cwd: folder,
    input,
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    timeout: 120_000,
    ...(runAs.uid === undefined ? {} : { uid: runAs.uid }),
    ...(runAs.gid === undefined ? {} : { gid: runAs.gid }),
  });
  if (done.status === 0 && !/^.*(ERROR|FATAL):/m.test(done.stderr)) return;
  const said = done.error?.message ?? `${done.stdout}${done.stderr}`.trim().slice(-1_500);
  throw new NightshiftError('postgres_unavailable', `${command} failed in ${folder}:\n${said}`);
}

function readPassword(file: string, data: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    const message = `the password of the database ${data} is missing (${file}): restore that file, or choose a new --data-dir`;
    throw new NightshiftError('postgres_unavailable', message, { cause });
  }
}

function otherVersion(data: string, found: number, ours: number): NightshiftError {
  const message = `the database ${data} was created by PostgreSQL ${found}, and this is PostgreSQL ${ours}: choose a new --data-dir, or move the data with pg_dump`;
  return new NightshiftError('postgres_unavailable', message);
}
