import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureKeyFile } from '../../platform/header-vault';
import type { ComponentSpec } from '../supervision/component';

/** Where the embedded S3 server keeps its objects, and its port. */
export interface S3ComponentOptions {
  /** The program of versitygw. */
  readonly program: string;
  /** Folder for objects and key, inside the data directory. */
  readonly folder: string;
  readonly port: number;
}

const BUCKET = 'nightshift';
const ACCESS_KEY_ID = 'nightshift';
const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

/**
 * versitygw on loopback: an S3 server whose buckets are folders. Its key is random, and kept in a file that
 * only this user can read. It is passed in the environment, because every user can read arguments.
 */
export function s3Component({ program, folder, port }: S3ComponentOptions): ComponentSpec {
  const objects = join(folder, 'objects');
  mkdirSync(join(objects, BUCKET), { recursive: true, mode: 0o700 });
  ensureKeyFile(secretFile(folder));
  const secret = readFileSync(secretFile(folder), 'utf8').trim();
  return {
    name: 's3',
    command: program,
    args: [
      ...['--port', `127.0.0.1:${port}`, '--keep-alive', '--quiet', '--health', '/health'],
      ...['posix', objects],
    ],
    env: { PATH: '/usr/bin:/bin', ROOT_ACCESS_KEY: ACCESS_KEY_ID, ROOT_SECRET_KEY: secret },
    cwd: folder,
    isReady: () => isHealthy(port),
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 10_000,
    killSignal: 'SIGKILL',
  };
}

/** The settings `object_store` with which API and worker use the server. */
export function s3Settings(folder: string, port: number): Record<string, unknown> {
  return {
    type: 's3',
    bucket: BUCKET,
    endpoint: `http://127.0.0.1:${port}`,
    use_path_style: true,
    access_key_id: ACCESS_KEY_ID,
    secret_access_key_file: secretFile(folder),
    // On the same disk as everything else of the stack: a folder for temporary files is often in memory.
    cache_dir: folder,
  };
}

/** Whether a stack with this folder has used the embedded S3 server. */
export function hasS3Objects(folder: string): boolean {
  return existsSync(secretFile(folder));
}

function secretFile(folder: string): string {
  return join(folder, 'secret-access-key');
}

async function isHealthy(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/health`, { signal });
    // An unread body would keep the connection, and each probe would open another one.
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    return false;
  }
}
