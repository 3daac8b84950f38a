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

/** The lock is ours. */
export interface HeldLock {
  readonly kind: 'held';
  /** Removes the file; a lock that somebody else holds by now is left alone. */
  release(): void;
}

/** Somebody else has it: a living process. */
export interface LostLock {
  readonly kind: 'lost';
  readonly pid: number;
}

const TRIES = 5;
/** What a link in place of a lock points to is never read. */
const READ_NO_LINK = constants.O_RDONLY | constants.O_NOFOLLOW;

/**
 * Takes a lock that is a file with pid and start time of its holder; the file of a dead process is
 * taken over. Of several that try at once, one wins.
 */
export function lockFile(file: string): HeldLock | LostLock {
  const own = JSON.stringify(identify(process.pid) ?? { pid: process.pid, startedAt: null });
  let pid = 0;
  for (let attempt = 0; attempt < TRIES; attempt++) {
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

/** The living process that holds the lock, or `null`. */
export function readHolder(file: string): number | null {
  const text = readText(file);
  const holder = text === null ? null : parseIdentity(text);
  return holder !== null && isAlive(holder) ? holder.pid : null;
}

/**
 * A link appears with all its content or not at all, and never replaces a file. The draft is new (`wx`
 * follows no link either).
 */
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
      // A third process holds the name by now.
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
