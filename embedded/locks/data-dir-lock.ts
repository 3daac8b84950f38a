import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { lockFile, readHolder, type HeldLock } from './lock-file';

/**
 * Locks a data directory: at most one stack runs in it.
 *
 * @throws data_dir_in_use naming the pid that holds it
 */
export function lockDataDir(dataDir: string): HeldLock {
  const taken = lockFile(lockPath(dataDir));
  if (taken.kind === 'held') return taken;
  const message = `${dataDir} is in use by process ${taken.pid}: stop that process, or choose another directory with --data-dir`;
  throw new NightshiftError('data_dir_in_use', message);
}

/** Pid of the process whose stack runs in `dataDir`, or `null`. */
export function dataDirHolder(dataDir: string): number | null {
  return readHolder(lockPath(dataDir));
}

function lockPath(dataDir: string): string {
  return join(dataDir, 'lock');
}
