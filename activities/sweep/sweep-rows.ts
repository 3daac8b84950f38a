import { fileIndexKey, uploadPrefix } from '../../core/names/object-names';
import { MIN_INDEXED_BYTES } from '../../core/plan/file-index';
import type { SweepRows } from '../../storage/postgres/sweep';
import type { SweepPageResult } from './contract';
import type { Sweeper } from './ports';
import { deleteKeys, deletePrefix } from './delete-objects';

const PAGE_ROWS = 500;
/** Small, because an upload may have thousands of parts. */
const PAGE_UPLOADS = 20;

/** Removes a page of rows that have no objects. */
export function sweepRows(remove: (rows: SweepRows, limit: number) => Promise<number>): Sweeper {
  return async ({ rows }) => counted(await remove(rows, PAGE_ROWS));
}

/** Removes the bytes of files that were deleted or have expired, and that no open batch needs, and their indexes. */
export const emptyFiles: Sweeper = async ({ rows, store }, _input, check) => {
  const files = await rows.filesToEmpty(PAGE_ROWS);
  const keys = files.flatMap(({ objectKey, bytes }) =>
    bytes < MIN_INDEXED_BYTES ? [objectKey] : [fileIndexKey(objectKey), objectKey],
  );
  await deleteKeys(store, keys, check);
  await rows.markEmptied(files.map(({ id }) => id));
  return counted(files.length);
};

/**
 * Removes the objects of ended uploads. The API removes parts itself when an upload ends, unless the upload
 * expires or the API server crashes or fails.
 */
export const clearUploads: Sweeper = async ({ rows, store }, _input, check) => {
  const uploads = await rows.uploadsToClear(PAGE_UPLOADS);
  for (const { id, leftOverKeys } of uploads) {
    await deletePrefix(store, uploadPrefix(id), { kept: [], check });
    for (const key of leftOverKeys) await store.delete(key);
    await rows.markUploadsCleared([id]);
  }
  return { removed: uploads.length, nextSeq: uploads.length < PAGE_UPLOADS ? null : 0 };
};

/** Removed items are not found again, so the next page uses the same cursor. */
function counted(removed: number): SweepPageResult {
  return { removed, nextSeq: removed < PAGE_ROWS ? null : 0 };
}
