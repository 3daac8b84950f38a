import { access } from 'node:fs/promises';
import { NightshiftError } from '../../core/errors';
import { temporaryFolder } from './filesystem-layout';

/** Whether a file operation failed with one of these codes of the operating system. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false;
  return typeof error.code === 'string' && codes.includes(error.code);
}

/** `object_store_failed`, which is retryable, with its cause; a NightshiftError stays as it is. */
export function asStoreError(error: unknown, action: string): NightshiftError {
  if (error instanceof NightshiftError) return error;
  return new NightshiftError('object_store_failed', `${action}: ${String(error)}`, {
    cause: error,
  });
}

/** Runs a file operation with its errors mapped by {@link asStoreError}. */
export async function mapped<T>(action: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw asStoreError(error, action);
  }
}

/**
 * Runs an operation on an object that may be missing. `ENOENT` becomes `object_missing`, but only while the
 * store is mounted. All other errors are `object_store_failed`, which is retryable, and so is `ENOENT` of an
 * unmounted store: it has lost nothing, and no batch may fail because of it.
 */
export async function mappedLookup<T>(
  root: string,
  action: string,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw asStoreError(error, action);
    await mapped(action, () => expectStore(root));
    throw new NightshiftError('object_missing', `${action}: no such object`, { cause: error });
  }
}

/**
 * Fails if the store is not mounted. Unmounting leaves an empty folder, in which nothing may be looked up
 * or created.
 */
export function expectStore(root: string): Promise<void> {
  return access(temporaryFolder(root));
}
