import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

const FOLDER_MODE = 0o700;
/** Requests and answers are for the user of the processes alone, wherever the operator puts the store. */
export const FILE_MODE = 0o600;

/**
 * Folders that hold the name of a folder this process has made and not synced yet, with a number that
 * grows. Someone who finds a folder in its place must not take its name for durable.
 */
const unsynced = new Map<string, number>();
let made = 0;

/** Makes the names in a folder survive power loss. */
export async function syncFolder(path: string): Promise<void> {
  const seen = unsynced.get(path);
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  // A name that was made while the sync ran waits for the next one.
  if (unsynced.get(path) === seen) unsynced.delete(path);
}

/** Makes the names in a folder survive power loss, with those of the folders above it. */
export async function syncFolderAndAbove(path: string): Promise<void> {
  await syncFolder(path);
  await syncAbove(path);
}

/** Creates a folder and what lies above it; their names need a sync. */
export async function makeFolder(path: string): Promise<void> {
  const firstNew = await mkdir(path, { recursive: true, mode: FOLDER_MODE });
  if (firstNew === undefined) return;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    unsynced.set(folder, ++made);
    if (folder === dirname(firstNew) || folder === dirname(folder)) return;
  }
}

/** Creates a folder and what lies above it; every name survives power loss. */
export async function ensureFolder(path: string): Promise<void> {
  await makeFolder(path);
  await syncAbove(path);
}

async function syncAbove(path: string): Promise<void> {
  for (let above = dirname(path); ; above = dirname(above)) {
    if (unsynced.has(above)) await syncFolder(above);
    if (above === dirname(above)) return;
  }
}
