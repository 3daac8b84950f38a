import type { Pool } from 'pg';
import { OPEN_STATUSES } from '../../core/batch/status';
import { batchOfResultFile } from '../../core/names/ids';
import { parseFileIndexKey, parseFileKey, parseUploadPartKey } from '../../core/names/object-names';
import { query } from './sql';

/**
 * The given keys whose objects have no owner. The object of a file has an owner if one of these rows exists:
 * the file, the batch whose result it is, an open batch whose input it is or whose requests name it (the row of
 * the file may be lost), or an upload with a completion that wrote it. The index of a file has the owners of the file that
 * do not name its key. An upload part has an owner until its upload is marked as cleared. All other objects count as owned.
 * @throws postgres_unavailable
 */
export async function unownedKeys(pool: Pool, keys: readonly string[]): Promise<string[]> {
  const files = [];
  const parts = [];
  for (const key of keys) {
    const file = parseFileKey(key) ?? parseFileIndexKey(key);
    const part = parseUploadPartKey(key);
    if (file !== null) files.push({ key, fileId: file.fileId });
    else if (part !== null) parts.push({ key, uploadId: part.uploadId });
  }
  return [...(await unownedFiles(pool, files)), ...(await unownedParts(pool, parts))];
}

async function unownedFiles(
  pool: Pool,
  files: readonly { readonly key: string; readonly fileId: string }[],
): Promise<string[]> {
  if (files.length === 0) return [];
  const rows = await query<{ key: string }>(
    pool,
    `select o.key from unnest($1::text[], $2::text[], $3::text[]) as o (key, file_id, batch_id)
     where not exists (select 1 from files f where f.id = o.file_id)
       and not exists (select 1 from batches b where b.id = o.batch_id)
       and not exists (
         select 1 from batches b where b.input_object_key = o.key and b.status = any($4))
       and not exists (
         select 1 from batch_files p join batches b on b.id = p.batch_id
         where p.file_id = o.file_id and b.status = any($4))
       and o.key <> all (coalesce(
         (select array_agg(joined.key) from uploads u, unnest(u.joined_keys) as joined (key)), '{}'))`,
    [
      files.map(({ key }) => key),
      files.map(({ fileId }) => fileId),
      files.map(({ fileId }) => batchOfResultFile(fileId)),
      [...OPEN_STATUSES],
    ],
  );
  return rows.map(({ key }) => key);
}

async function unownedParts(
  pool: Pool,
  parts: readonly { readonly key: string; readonly uploadId: string }[],
): Promise<string[]> {
  if (parts.length === 0) return [];
  const rows = await query<{ key: string }>(
    pool,
    `select o.key from unnest($1::text[], $2::text[]) as o (key, upload_id)
     where not exists (
       select 1 from uploads u where u.id = o.upload_id and u.parts_gone_at is null)`,
    [parts.map(({ key }) => key), parts.map(({ uploadId }) => uploadId)],
  );
  return rows.map(({ key }) => key);
}
