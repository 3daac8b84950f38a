import { randomBytes } from 'node:crypto';
import { link, open, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ObjectBody, PutResult } from '../object-store';
import { FILE_MODE, makeFolder, syncFolderAndAbove } from './durable-folder';
import { hasCode, mapped } from './filesystem-errors';
import { EarlySync } from './early-sync';
import { temporaryFolder } from './filesystem-layout';
import { GatheredWrites, type Write } from './gathered-writes';

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
  const file = await mapped(`write ${path}`, () => open(temporary, 'wx', FILE_MODE));
  let result: PutResult;
  try {
    await writeWhole(file, options);
    result = await mapped(`link ${path}`, () => linkIfAbsent(temporary, path));
  } catch (error) {
    await discard(file, temporary);
    throw error;
  }
  // The loser syncs too: the winner may not have synced yet, and `exists` promises durability.
  const named = mapped(`sync ${path}`, () => syncFolderAndAbove(dirname(path)));
  await Promise.all([named, discard(file, temporary)]);
  return result;
}

/** Nothing depends on the temporary file any more: the object has a name of its own, or none. Never rejects. */
async function discard(file: FileHandle, temporary: string): Promise<void> {
  await Promise.allSettled([file.close(), unlink(temporary)]);
}

/** Errors of the body itself are not mapped: they are not errors of the store. */
async function writeWhole(
  file: FileHandle,
  { path, body, onPassed }: PutFileOptions,
): Promise<void> {
  const action = `write ${path}`;
  const sync = new EarlySync(file);
  const write = (bytes: Uint8Array): Promise<void> =>
    mapped(action, async () => {
      await writeFully(file, bytes);
      sync.wrote(bytes.length);
    });
  if (body instanceof Uint8Array) await write(body);
  else await writePieces(body, { write, onPassed });
  await mapped(action, () => sync.finish());
}

/** The first piece is written by itself: it may be the only one. */
async function writePieces(
  pieces: AsyncIterable<Uint8Array>,
  { write, onPassed }: { readonly write: Write; readonly onPassed: PutFileOptions['onPassed'] },
): Promise<void> {
  const gathered = new GatheredWrites(write);
  let add = write;
  try {
    for await (const piece of pieces) {
      await add(piece);
      onPassed?.(piece.length);
      add = (next) => gathered.add(next);
    }
  } catch (error) {
    // The file is closed next.
    await gathered.abandon();
    throw error;
  }
  await gathered.finish();
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
