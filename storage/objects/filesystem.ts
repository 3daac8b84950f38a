import { constants } from 'node:fs';
import { access, open, readdir, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { NightshiftError, nullIfMissing } from '../../core/errors';
import type { Range } from '../../core/range';
import type {
  JoinInspector,
  ObjectHead,
  ObjectReader,
  ObjectStore,
  PutResult,
} from '../object-store';
import { ensureFolder } from './durable-folder';
import { hasCode, mapped, mappedLookup } from './filesystem-errors';
import { objectPath, objectsFolder, temporaryFolder } from './filesystem-layout';
import { listFiles } from './filesystem-list';
import { putFileIfAbsent } from './filesystem-put';
import { createFileReader } from './filesystem-reader';
import { FileStream, type FileStreamOptions } from './filesystem-stream';
import { readOrCreateStoreId, readStoreId } from './store-id';

const STALE_TEMPORARY_MS = 24 * 3_600_000;

export interface FilesystemStoreOptions {
  /** Root folder; created if it is missing. */
  readonly path: string;
  /** Called with the size of each chunk once it is written or consumed. */
  readonly onPassed?: (bytes: number) => void;
}

/**
 * The object store in a folder of this host: a key is a path below `<path>/objects`. Opening removes
 * temporary files of crashed writers that are older than a day. The caller closes it.
 * @throws object_store_failed
 */
export async function openFilesystemStore(options: FilesystemStoreOptions): Promise<ObjectStore> {
  const { path, onPassed = () => undefined } = options;
  await mapped('open object store', async () => {
    await ensureFolder(objectsFolder(path));
    await ensureFolder(temporaryFolder(path));
    await sweepTemporaryFiles(temporaryFolder(path));
  });
  return filesystemStore(path, onPassed);
}

function filesystemStore(root: string, onPassed: (bytes: number) => void): ObjectStore {
  return {
    putIfAbsent: async (key, body) =>
      putFileIfAbsent(root, { path: objectPath(root, key), body, onPassed }),
    concatenate: async (key, parts, inspector) =>
      joinFiles({ root, key, parts, inspector, onPassed }),
    head: (key) => nullIfMissing(headFile(root, key)),
    read: (key, range) => readRange(root, key, range),
    stream: (key, range) => streamFile(root, key, { range, onPassed }),
    scan: (key, { range, signal } = {}) => {
      const chunks = streamFile(root, key, { range, onPassed, lendsChunks: true });
      return signal === undefined ? chunks : addAbortSignal(signal, chunks);
    },
    open: (key) => openReader(root, key),
    list: (prefix, options) => listFiles(root, prefix, options),
    delete: (key) => mapped(`delete ${key}`, () => deleteFile(root, key)),
    check: () => mapped('check object store', () => checkFolders(root)),
    storeId: () => readOrCreateStoreId(root),
    removeUnfinished: () =>
      mapped('sweep object store', () => sweepTemporaryFiles(temporaryFolder(root))),
    close: () => Promise.resolve(),
  };
}

interface FilesToJoin {
  readonly root: string;
  readonly key: string;
  readonly parts: readonly string[];
  readonly inspector: JoinInspector | undefined;
  readonly onPassed: (bytes: number) => void;
}

/** Streams the parts through this process: they are on the same disk. */
function joinFiles({ root, key, parts, inspector, onPassed }: FilesToJoin): Promise<PutResult> {
  async function* body(): AsyncGenerator<Buffer> {
    for (const [index, part] of parts.entries()) {
      const chunks = streamFile(root, part, { range: undefined, onPassed });
      for await (const chunk of chunks as AsyncIterable<Buffer>) {
        inspector?.update(chunk, index);
        yield chunk;
      }
    }
    inspector?.finish();
  }
  return putFileIfAbsent(root, { path: objectPath(root, key), body: body() });
}

function streamFile(root: string, key: string, options: FileStreamOptions): FileStream {
  return new FileStream(async () => (await openObject(root, key)).file, options);
}

async function readRange(root: string, key: string, range?: Range): Promise<Buffer> {
  const reader = await openReader(root, key);
  try {
    const start = range?.from ?? 0;
    return await reader.read(start, (range?.to ?? reader.size) - start);
  } finally {
    await reader.close();
  }
}

async function openReader(root: string, key: string): Promise<ObjectReader> {
  const { file, size } = await openObject(root, key);
  return createFileReader(file, size);
}

function openObject(root: string, key: string): Promise<{ file: FileHandle; size: number }> {
  return mappedLookup(root, `open ${key}`, async () => {
    const file = await open(objectPath(root, key), 'r');
    try {
      const stats = await file.stat();
      if (!stats.isFile()) throw isFolder(key);
      return { file, size: stats.size };
    } catch (error) {
      await file.close();
      throw error;
    }
  });
}

function headFile(root: string, key: string): Promise<ObjectHead> {
  return mappedLookup(root, `look up ${key}`, async () => {
    const stats = await stat(objectPath(root, key));
    if (!stats.isFile()) throw isFolder(key);
    return { size: stats.size };
  });
}

function isFolder(key: string): NightshiftError {
  return new NightshiftError('object_missing', `${key} is a folder of keys, not an object`);
}

/** Also removes folders that became empty. A concurrent put creates its folder again. */
async function deleteFile(root: string, key: string): Promise<void> {
  const path = objectPath(root, key);
  const isThere = await nullIfMissing(headFile(root, key));
  if (isThere === null) return;
  await unlink(path).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error;
  });
  try {
    for (let folder = dirname(path); folder !== objectsFolder(root); folder = dirname(folder)) {
      await rmdir(folder);
    }
  } catch {
    // Not empty, or removed already.
  }
}

/** Also reads a file, because a failing disk may still list its folders. */
async function checkFolders(root: string): Promise<void> {
  await access(objectsFolder(root), constants.R_OK | constants.W_OK | constants.X_OK);
  await access(temporaryFolder(root), constants.R_OK | constants.W_OK | constants.X_OK);
  await readStoreId(root);
}

async function sweepTemporaryFiles(folder: string): Promise<number> {
  let removed = 0;
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const age = Date.now() - ((await stat(path).catch(() => null))?.mtimeMs ?? Date.now());
    if (age <= STALE_TEMPORARY_MS) continue;
    await unlink(path).then(
      () => removed++,
      () => undefined,
    );
  }
  return removed;
}
