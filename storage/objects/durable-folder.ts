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

/** Creates a folder and what lies above it; every name that is new is made durable. */
export async function ensureFolder(path: string): Promise<void> {
  const firstNew = await mkdir(path, { recursive: true });
  if (firstNew === undefined) return;
  const top = dirname(firstNew);
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    await syncFolder(folder);
    if (folder === top || folder === dirname(folder)) return;
  }
}
