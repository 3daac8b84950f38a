import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { identify, isAlive, type ProcessIdentity } from '../supervision/process-identity';

/** This process holds the lock. */
export interface HeldLock {
  readonly kind: 'held';
  /** Removes the file. Does nothing if another process holds the lock by now. */
  release(): void;
}

/** Another living process holds the lock. */
export interface LostLock {
  readonly kind: 'lost';
  readonly pid: number;
}

const ATTEMPTS = 5;
/** A symbolic link in place of a lock is not followed. */
const READ_NO_LINK = constants.O_RDONLY | constants.O_NOFOLLOW;

/**
 * Takes a lock: a file with the pid and start time of its holder.
 *
 * The operating system removes no file when a process dies, so a lock of a dead process must be taken
 * over, and several processes may try at once. Three rules make exactly one of them win. A lock appears
 * under its name complete or not at all, because it is a hard link to a finished draft, and a link never
 * replaces a file. A stale lock is renamed before it is removed: only one process can rename it. Then the
 * content of the renamed file is compared with the content read before, because another process may have
 * taken the lock over in between. A valid lock that was moved by mistake is put back
 * (docs/design/embedded-stack.md#lock).
 */
export function lockFile(file: string): HeldLock | LostLock {
  const own = JSON.stringify(identify(process.pid) ?? { pid: process.pid, startedAt: null });
  let pid = 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (createWhole(file, own)) return { kind: 'held', release: () => releaseOwn(file, own) };
    const found = readText(file);
    if (found === null) continue;
    const holder = parseIdentity(found);
    pid = holder?.pid ?? 0;
    if (holder !== null && isAlive(holder)) break;
    removeStale(file, found);
  }
  return { kind: 'lost', pid };
}

/** Pid of the living process that holds the lock, or `null`. */
export function readHolder(file: string): number | null {
  const text = readText(file);
  const holder = text === null ? null : parseIdentity(text);
  return holder !== null && isAlive(holder) ? holder.pid : null;
}

/** Returns false if the file exists. `wx` makes a new draft and follows no link. */
function createWhole(file: string, text: string): boolean {
  const draft = `${file}.${process.pid}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
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
      // A third process has created the lock in the meantime.
    }
  }
  rmSync(moved, { force: true });
}

function releaseOwn(file: string, own: string): void {
  if (readText(file) === own) rmSync(file, { force: true });
}

function readText(file: string): string | null {
  try {
    const fd = openSync(file, READ_NO_LINK);
    try {
      return readFileSync(fd, 'utf8');
    } finally {
      closeSync(fd);
    }
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
