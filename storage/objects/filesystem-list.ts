import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ListedObject, ListOptions } from '../object-store';
import { nullIfMissing } from '../../core/errors';
import { mappedLookup } from './filesystem-errors';
import { objectsFolder, splitPrefix } from './filesystem-layout';

/**
 * Objects whose key begins with `prefix`, in key order. Reads only folders that can hold such keys, one
 * after the other. Omits objects that are deleted meanwhile. @throws object_store_failed
 */
export async function* listFiles(
  root: string,
  prefix: string,
  { after = '' }: ListOptions = {},
): AsyncGenerator<ListedObject> {
  const { folder, begin } = splitPrefix(prefix);
  yield* walk(root, folder, { begin, after });
}

async function* walk(
  root: string,
  folder: string,
  { begin, after }: { readonly begin: string; readonly after: string },
): AsyncGenerator<ListedObject> {
  for (const name of await namesInKeyOrder(root, folder)) {
    if (!name.startsWith(begin)) continue;
    const key = folder + name;
    if (name.endsWith('/')) {
      if (key > after || after.startsWith(key)) yield* walk(root, key, { begin: '', after });
      continue;
    }
    if (key <= after) continue;
    const facts = await factsOf(root, key);
    if (facts !== null) yield { key, ...facts };
  }
}

/** Names in a folder of keys; an empty list if it is missing. Names of folders end with a slash. */
export async function namesInKeyOrder(root: string, folder: string): Promise<string[]> {
  const path = join(objectsFolder(root), splitPrefix(folder).folder);
  const names = mappedLookup(root, `list ${folder}`, async () => {
    const entries = await readdir(path, { withFileTypes: true });
    // Names of folders are sorted with their slash: `a-b` < `a/c`, although `a` < `a-b`.
    return entries.map((entry) => entry.name + (entry.isDirectory() ? '/' : '')).sort();
  });
  return (await nullIfMissing(names)) ?? [];
}

function factsOf(root: string, key: string): Promise<Omit<ListedObject, 'key'> | null> {
  const path = join(objectsFolder(root), key);
  const facts = mappedLookup(root, `list ${key}`, async () => {
    const { size, mtimeMs } = await stat(path);
    return { size, writtenAtMs: mtimeMs };
  });
  return nullIfMissing(facts);
}
