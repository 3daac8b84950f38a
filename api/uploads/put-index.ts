import { fileIndexKey } from '../../core/names/object-names';
import type { RouteDeps } from '../app-deps';
import type { FileIndexer } from './file-indexer';

/** Where the index goes, and who hears if it cannot be stored. */
export type PutIndexDeps = Pick<RouteDeps, 'store' | 'logger'>;

/** Stores the index of a file whose row exists, if there is one. Never rejects: the file is there with or without it. */
export async function putIndex(
  objectKey: string,
  indexer: FileIndexer | null,
  { store, logger }: PutIndexDeps,
): Promise<void> {
  const index = indexer?.finish() ?? null;
  if (index === null) return;
  await store.putIfAbsent(fileIndexKey(objectKey), index).catch((error: unknown) => {
    logger.warn({ err: error, key: objectKey }, 'the index of a file could not be stored');
  });
}
