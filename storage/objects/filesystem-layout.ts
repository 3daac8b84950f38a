import { resolve } from 'node:path';
import { requireKey, requirePrefix } from './object-key';

/** Folder of all objects: a key is a path below it. */
export function objectsFolder(root: string): string {
  return resolve(root, 'objects');
}

/** Folder of objects being written, on the same filesystem so that `link` works. */
export function temporaryFolder(root: string): string {
  return resolve(root, 'tmp');
}

/** File with the random id of this store. */
export function storeIdPath(root: string): string {
  return resolve(root, 'store-id');
}

/**
 * Splits a prefix of keys: `a/b/c` means everything in folder `a/b/` that begins with `c`.
 * @throws internal for a prefix that no key can have
 */
export function splitPrefix(prefix: string): { folder: string; begin: string } {
  const slash = requirePrefix(prefix).lastIndexOf('/') + 1;
  return { folder: prefix.slice(0, slash), begin: prefix.slice(slash) };
}

/**
 * Path of the object `key`, always inside the objects folder. @throws internal for a key that is not
 * slash-separated names of `[A-Za-z0-9._-]`, or that would leave the folder
 */
export function objectPath(root: string, key: string): string {
  return resolve(objectsFolder(root), requireKey(key));
}
