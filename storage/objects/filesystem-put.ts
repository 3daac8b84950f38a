import { randomBytes } from 'node:crypto';
import { link, open, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ObjectBody, PutResult } from '../object-store';
import { FILE_MODE, makeFolder, syncFolderAndAbove } from './durable-folder';
import { hasCode, mapped } from './filesystem-errors';
import { EarlySync } from './early-sync';
import { temporaryFolder } from './filesystem-layout';

/** A folder may vanish between its creation and the link, if the last object in it is deleted. */
const LINK_TRIES = 5;

export interface PutFileOptions {
  readonly path: string;
  readonly body: ObjectBody;
  /** Called with the size of each piece that is written. */
  readonly onPassed?: (bytes: number) => void;
}

/**
 * Writes `body` to `path` if there is no file: temporary file, `fdatasync`, `link` to the name (which fails
 * if another writer was first), fsync of the folder and of new folders above it, unlink. A crash in
 * between leaves at most the temporary file. @throws object_store_failed, and what the body throws
 */
export async function putFileIfAbsent(root: string, options: PutFileOptions): Promise<PutResult> {
  const { path } = options;
  const temporary = join(temporaryFolder(root), `${process.pid}-${randomBytes(8).toString('hex')}`);
  try {
    await writeWhole(temporary, options);
    return await mapped(`link ${path}`, async () => {
      const result = await linkIfAbsent(temporary, path);
      // The loser syncs too: the winner may not have synced yet, and `exists` promises durability.
      await syncFolderAndAbove(dirname(path));
      return result;
    });
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

/** Errors of the body itself are not mapped: they are not errors of the store. */
async function writeWhole(path: string, { body, onPassed }: PutFileOptions): Promise<void> {
  const action = `write ${path}`;
  const file = await mapped(action, () => open(path, 'wx', FILE_MODE));
  try {
    const sync = new EarlySync(file);
    const chunks = body instanceof Uint8Array ? [body] : body;
    for await (const chunk of chunks) {
      await mapped(action, () => writeFully(file, chunk));
      sync.wrote(chunk.length);
      onPassed?.(chunk.length);
    }
    await mapped(action, () => sync.finish());
  } finally {
    await file.close();
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done)).bytesWritten;
  }
}

async function linkIfAbsent(from: string, to: string): Promise<PutResult> {
  for (let tries = 1; ; tries++) {
    try {
      await link(from, to);
      return 'created';
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return 'exists';
      if (!hasCode(error, 'ENOENT') || tries === LINK_TRIES) throw error;
      await makeFolder(dirname(to));
    }
  }
}
