import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { lockFile, readHolder, type HeldLock } from './lock-file';

/**
 * One data directory, one running stack: a file with pid and start time. The lock of a dead process
 * is taken over.
 *
 * @throws data_dir_in_use naming the pid that holds it
 */
export function lockDataDir(dataDir: string): HeldLock {
  const taken = lockFile(join(dataDir, 'lock'));
  if (taken.kind === 'held') return taken;
  throw new NightshiftError(
    'data_dir_in_use',
    `${dataDir} is in use by process ${taken.pid}: stop that one, or choose another with --data-dir`,
  );
}

/** The pid that holds `dataDir` now, or `null`. */
export function dataDirHolder(dataDir: string): number | null {
  return readHolder(join(dataDir, 'lock'));
}
