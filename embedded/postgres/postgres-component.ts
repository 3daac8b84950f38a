import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComponentSpec } from '../supervision/component';
import { identify } from '../supervision/process-identity';
import { findPostgres } from './binaries';
import { DATABASE_NAME, DATABASE_USER, openCluster } from './cluster';
import { chooseUser, databaseFolder, sharedFolder } from './run-as';

/** Where the embedded PostgreSQL keeps its data, and its port. */
export interface PostgresComponentOptions {
  /** Folder for the database, inside the data directory. */
  readonly folder: string;
  readonly passwordFile: string;
  readonly port: number;
  say(message: string): void;
}

/** How to run the embedded PostgreSQL, and how to reach it. */
export interface PostgresComponent {
  readonly spec: ComponentSpec;
  /** With user and password. */
  readonly url: string;
  /** A server of an earlier run that its supervisor had not recorded, or `null`. */
  readonly orphanPid: number | null;
}

/**
 * PostgreSQL on loopback, with a password and without a Unix socket. SIGINT is its fast stop. SIGQUIT
 * stops it at once, and the next start recovers.
 *
 * @throws postgres_unavailable
 */
export function postgresComponent(options: PostgresComponentOptions): PostgresComponent {
  const { port, say } = options;
  const runAs = chooseUser();
  const folder = databaseFolder(options.folder, runAs, say);
  const copies = runAs.uid === undefined ? options.folder : sharedFolder();
  const binaries = findPostgres(runAs, copies, say);
  const { passwordFile } = options;
  const isOutside = folder !== options.folder;
  const cluster = openCluster({ binaries, runAs, folder, passwordFile, isOutside, say });
  const { data, password } = cluster;
  const spec: ComponentSpec = {
    name: 'postgres',
    command: binaries.postgres,
    args: serverArguments(data, port),
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    cwd: folder,
    ...(runAs.uid === undefined ? {} : { uid: runAs.uid }),
    ...(runAs.gid === undefined ? {} : { gid: runAs.gid }),
    isReady: (pid) => isReady(data, pid),
    readyTimeoutMs: 60_000,
    stopSignal: 'SIGINT',
    stopTimeoutMs: 20_000,
    killSignal: 'SIGQUIT',
  };
  const url = `postgres://${DATABASE_USER}:${password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  return { spec, url, orphanPid: livingServer(data) };
}

function serverArguments(data: string, port: number): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=100',
    'shared_buffers=64MB',
    'log_checkpoints=off',
  ];
  return ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
}

/** In the server's pid file, line 1 is its pid, and line 8 reads `ready` once it accepts connections. */
function isReady(data: string, pid: number): boolean {
  const lines = pidFile(data);
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}

function livingServer(data: string): number | null {
  const pid = Number(pidFile(data)[0] ?? NaN);
  if (!Number.isInteger(pid) || pid <= 1 || identify(pid) === null) return null;
  return commandOf(pid).includes(data) ? pid : null;
}

/** Empty if the system does not show it: a pid alone does not prove that the process is our server. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

function pidFile(data: string): string[] {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}
