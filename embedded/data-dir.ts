import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { NightshiftError } from '../core/errors';
import { ensureKeyFile } from '../platform/header-vault';

/** Folders and files of one stack (docs/design/embedded-stack.md#data-directory). */
export interface DataDir {
  readonly path: string;
  readonly logs: string;
  readonly objects: string;
  /** Objects and key of the embedded S3 server; only made if it is used. */
  readonly s3: string;
  /** Files of the running stack: the settings and pids of its components. */
  readonly run: string;
  readonly temporal: string;
  readonly postgres: string;
  /** File with the key that encrypts the pass-through headers of batches. */
  readonly passThroughKey: string;
  /** File with the token by which the embedded gateway recognizes the worker. */
  readonly workerToken: string;
  /** Directory for large bodies of the gateway. */
  readonly spool: string;
}

/** If we are root, PostgreSQL runs as another user, which must pass through this folder to reach its own. */
const DIR_MODE = process.getuid?.() === 0 ? 0o711 : 0o700;

/** Makes the folders of a data directory and checks that they can be written. @throws data_dir_unusable */
export function openDataDir(path: string): DataDir {
  const root = resolve(path);
  const dir: DataDir = {
    path: root,
    logs: join(root, 'logs'),
    objects: join(root, 'objects'),
    s3: join(root, 's3'),
    run: join(root, 'run'),
    temporal: join(root, 'temporal'),
    postgres: join(root, 'postgres'),
    passThroughKey: join(root, 'pass-through.key'),
    workerToken: join(root, 'worker-token'),
    spool: join(root, 'spool'),
  };
  try {
    makeFolders(dir);
    checkWritable(dir);
    ensureKeyFile(dir.passThroughKey);
    ensureKeyFile(dir.workerToken);
  } catch (cause) {
    const reason = (cause as Error).message;
    const message = `${root} cannot be used as data directory (${reason}): choose another one with --data-dir`;
    throw new NightshiftError('data_dir_unusable', message, { cause });
  }
  return dir;
}

function makeFolders(dir: DataDir): void {
  if (makeWithParents(dir.path)) chmodSync(dir.path, DIR_MODE);
  if (!statSync(dir.path).isDirectory())
    throw new NightshiftError('internal', 'it is not a folder');
  for (const folder of [dir.logs, dir.objects, dir.run, dir.temporal]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  mkdirSync(dir.postgres, { recursive: true, mode: DIR_MODE });
}

/**
 * Returns whether the folder is new. Does not use `recursive: true`: Node loops forever if the system
 * answers ENOENT below an existing folder, as /proc does.
 */
function makeWithParents(path: string): boolean {
  if (existsSync(path)) return false;
  if (!existsSync(dirname(path))) makeWithParents(dirname(path));
  mkdirSync(path, { mode: 0o755 });
  return true;
}

/** Writes a file, because a full disk or a read-only mount does not show in a folder's mode. */
function checkWritable(dir: DataDir): void {
  const probe = join(dir.run, `probe.${process.pid}`);
  writeFileSync(probe, 'x'.repeat(4_096), { mode: 0o600 });
  rmSync(probe);
  for (const folder of [dir.path, dir.logs, dir.objects, dir.temporal]) {
    accessSync(folder, constants.W_OK | constants.X_OK);
  }
}
