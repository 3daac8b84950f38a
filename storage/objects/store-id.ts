import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hasCode, mapped } from './filesystem-errors';
import { storeIdPath } from './filesystem-layout';
import { putFileIfAbsent } from './filesystem-put';

/**
 * The random id of a filesystem store, 32 hex digits, created on first use. PostgreSQL holds it too: a
 * process that finds another id there refuses to start (docs/design/read-model.md#store-identity). The
 * store must have been opened before. @throws object_store_failed
 */
export function readOrCreateStoreId(root: string): Promise<string> {
  return mapped('store id', async () => {
    const path = storeIdPath(root);
    const known = await readStoreId(root);
    if (known !== null) return known;
    const body = Buffer.from(randomBytes(16).toString('hex'));
    await putFileIfAbsent(root, { path, body });
    return readFile(path, 'latin1');
  });
}

/** The id of a store; null if it has none yet. */
export async function readStoreId(root: string): Promise<string | null> {
  try {
    return await readFile(storeIdPath(root), 'latin1');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}
