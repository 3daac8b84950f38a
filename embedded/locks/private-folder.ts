import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { processEnvironment, type Environment } from '../../platform/config';

/**
 * A folder for files that all stacks of one user share, and nobody else can write or read: below
 * `XDG_RUNTIME_DIR`, or with the user's id in its name below the temporary folder. It may have been
 * there before, so it is looked at: in a folder that everybody may write, another user can make it first.
 *
 * @throws data_dir_unusable if what is there is not ours alone
 */
export function privateFolder(name: string, env: Environment = processEnvironment()): string {
  const runtime = env['XDG_RUNTIME_DIR'];
  if (runtime !== undefined && runtime !== '' && isOursAlone(runtime)) {
    return makePrivateFolder(join(runtime, name));
  }
  return makePrivateFolder(join(tmpdir(), `${name}-${ownUid()}`));
}

/** Makes the folder, or proves that the one that is there is ours alone. @throws data_dir_unusable */
export function makePrivateFolder(path: string): string {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  if (isOursAlone(path)) return path;
  const message = `${path} is not a folder of this user alone (mode 0700): remove it`;
  throw new NightshiftError('data_dir_unusable', message);
}

/** A real folder, no link to one, that belongs to us and that others cannot enter. */
function isOursAlone(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || !found.isDirectory()) return false;
  return found.uid === ownUid() && (found.mode & 0o077) === 0;
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
