import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

const FOLDER_MODE = 0o700;
/** Only the user that runs Nightshift may read requests and answers. */
export const FILE_MODE = 0o600;

/**
 * Folders in which this process has created a folder whose name is not synced yet. The value is the number
 * of the newest creation, so that a sync can detect a creation while it ran. Another caller that finds such
 * a new folder must not assume that its name is durable.
 */
const unsynced = new Map<string, number>();
let made = 0;

/** Makes the names in a folder survive power loss. */
async function syncFolder(path: string): Promise<void> {
  const seen = unsynced.get(path);
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  // A name created while the sync ran needs another one.
  if (unsynced.get(path) === seen) unsynced.delete(path);
}

/** Makes the names in a folder, and the names of the folders above it, survive power loss. */
export async function syncFolderAndAbove(path: string): Promise<void> {
  await syncFolder(path);
  await syncAbove(path);
}

/** Creates a folder and those above it. Their names still need a sync. */
export async function makeFolder(path: string): Promise<void> {
  const firstNew = await mkdir(path, { recursive: true, mode: FOLDER_MODE });
  if (firstNew === undefined) return;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    unsynced.set(folder, ++made);
    if (folder === dirname(firstNew) || folder === dirname(folder)) return;
  }
}

/** Creates a folder and those above it. All names survive power loss. */
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
