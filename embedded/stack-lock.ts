import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../core/errors';
import { identify, isAlive, type ProcessIdentity } from './process-identity';

/** The right to run a stack with one data directory. */
export interface StackLock {
  /** Gives the directory back; a lock that somebody else holds by now is left alone. */
  release(): void;
}

const TRIES = 5;

/**
 * One data directory, one running stack: a file with pid and start time. The lock of a dead process
 * is taken over.
 *
 * @throws data_dir_in_use naming the pid that holds it
 */
export function takeLock(dataDir: string): StackLock {
  const file = join(dataDir, 'lock');
  const own = JSON.stringify(identify(process.pid) ?? { pid: process.pid, startedAt: null });
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (createWhole(file, own)) return { release: () => releaseOwn(file, own) };
    const found = readText(file);
    if (found === null) continue;
    const holder = parseIdentity(found);
    if (holder !== null && isAlive(holder)) throw inUse(dataDir, holder.pid);
    removeStale(file, found);
  }
  throw new GatewayError('data_dir_in_use', `${dataDir}: several processes start on it at once`);
}

/** The pid that holds `dataDir` now, or `null`. */
export function lockHolder(dataDir: string): number | null {
  const text = readText(join(dataDir, 'lock'));
  const holder = text === null ? null : parseIdentity(text);
  return holder !== null && isAlive(holder) ? holder.pid : null;
}

/** A link appears with all its content or not at all, and never replaces a file. */
function createWhole(file: string, text: string): boolean {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Between reading a stale lock and removing it another process may have taken it over: what was moved
 * away is looked at again, and a living lock is put back.
 */
function removeStale(file: string, stale: string): void {
  const moved = `${file}.stale.${process.pid}`;
  try {
    renameSync(file, moved);
  } catch {
    return;
  }
  if (readText(moved) !== stale) {
    try {
      linkSync(moved, file);
    } catch {
      // A third process holds the name by now; the mover's own lock is checked by nobody else.
    }
  }
  rmSync(moved, { force: true });
}

function releaseOwn(file: string, own: string): void {
  if (readText(file) === own) rmSync(file, { force: true });
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const { pid, startedAt } = JSON.parse(text) as { pid?: unknown; startedAt?: unknown };
    if (typeof pid !== 'number') return null;
    return { pid, startedAt: typeof startedAt === 'string' ? startedAt : null };
  } catch {
    return null;
  }
}

function inUse(dataDir: string, pid: number): GatewayError {
  return new GatewayError(
    'data_dir_in_use',
    `${dataDir} is in use by process ${pid}: stop that one, or choose another with --data-dir`,
  );
}
