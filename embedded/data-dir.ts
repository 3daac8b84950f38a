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

/** Where the parts of one stack keep their state. */
export interface DataDir {
  readonly path: string;
  readonly logs: string;
  readonly objects: string;
  /** Files of the running stack: the children's config, their pids. */
  readonly run: string;
  readonly temporal: string;
  readonly postgres: string;
  /** Key of the headers that batches pass through. */
  readonly passThroughKey: string;
}

/** As root, Postgres runs as another user and has its folder in here: passable, not listable. */
const DIR_MODE = process.getuid?.() === 0 ? 0o711 : 0o700;

/**
 * Makes the folders of a data directory and proves that they can be written.
 *
 * @throws data_dir_unusable with what is wrong and what to do
 */
export function openDataDir(path: string): DataDir {
  const root = resolve(path);
  const dir: DataDir = {
    path: root,
    logs: join(root, 'logs'),
    objects: join(root, 'objects'),
    run: join(root, 'run'),
    temporal: join(root, 'temporal'),
    postgres: join(root, 'postgres'),
    passThroughKey: join(root, 'pass-through.key'),
  };
  try {
    makeFolders(dir);
    proveWritable(dir);
    ensureKeyFile(dir.passThroughKey);
  } catch (cause) {
    const reason = (cause as Error).message;
    const message = `${root} cannot be used as data directory (${reason}): choose another with --data-dir`;
    throw new NightshiftError('data_dir_unusable', message, { cause });
  }
  return dir;
}

function makeFolders(dir: DataDir): void {
  if (makeWithParents(dir.path)) chmodSync(dir.path, DIR_MODE);
  if (!statSync(dir.path).isDirectory()) throw new NightshiftError('internal', 'it is no folder');
  for (const folder of [dir.logs, dir.objects, dir.run, dir.temporal]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  mkdirSync(dir.postgres, { recursive: true, mode: DIR_MODE });
}

/**
 * Whether the folder was made now. Not `recursive: true`: Node never returns from that where the
 * system answers ENOENT below an existing folder, as /proc does.
 */
function makeWithParents(path: string): boolean {
  if (existsSync(path)) return false;
  if (!existsSync(dirname(path))) makeWithParents(dirname(path));
  mkdirSync(path, { mode: 0o755 });
  return true;
}

/** By writing, not by looking at modes: a full disk or a read-only mount says nothing in its mode. */
function proveWritable(dir: DataDir): void {
  const probe = join(dir.run, `probe.${process.pid}`);
  writeFileSync(probe, 'x'.repeat(4_096), { mode: 0o600 });
  rmSync(probe);
  for (const folder of [dir.path, dir.logs, dir.objects, dir.temporal]) {
    accessSync(folder, constants.W_OK | constants.X_OK);
  }
}
