import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes the names in a folder survive power loss. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Creates a folder and what lies above it, and says which folders hold a new name because of it. */
export async function makeFolder(path: string): Promise<string[]> {
  const firstNew = await mkdir(path, { recursive: true });
  if (firstNew === undefined) return [];
  const changed = [];
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    changed.push(folder);
    if (folder === dirname(firstNew) || folder === dirname(folder)) return changed;
  }
}

/** Creates a folder and what lies above it; every name that is new survives power loss. */
export async function ensureFolder(path: string): Promise<void> {
  for (const changed of await makeFolder(path)) await syncFolder(changed);
}
