import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { processEnvironment, type Environment } from '../../platform/config';

/**
 * A folder that all stacks of this user share and no other user can read or write: below
 * `XDG_RUNTIME_DIR`, or below the temporary folder with the user's id in its name.
 *
 * @throws data_dir_unusable if the folder exists and is not private
 */
export function privateFolder(name: string, env: Environment = processEnvironment()): string {
  const runtime = env['XDG_RUNTIME_DIR'];
  if (runtime !== undefined && runtime !== '' && isPrivate(runtime)) {
    return makePrivateFolder(join(runtime, name));
  }
  return makePrivateFolder(join(tmpdir(), `${name}-${ownUid()}`));
}

/**
 * Makes the folder, or checks the one that exists: in a folder that everyone can write, another user may
 * have made it first. @throws data_dir_unusable if it is not private
 */
export function makePrivateFolder(path: string): string {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  if (isPrivate(path)) return path;
  const message = `${path} is not a private folder of this user (mode 0700): remove it`;
  throw new NightshiftError('data_dir_unusable', message);
}

/** A folder, not a link to one, that belongs to this user and that others cannot enter. */
function isPrivate(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || !found.isDirectory()) return false;
  return found.uid === ownUid() && (found.mode & 0o077) === 0;
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
