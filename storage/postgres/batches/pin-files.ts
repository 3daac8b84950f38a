import type { Pool } from 'pg';
import { query } from '../sql';

/** A file that requests of a batch name, and whose bytes stay until the batch has ended. */
export interface PinnedFile {
  readonly id: string;
  readonly objectKey: string;
  readonly bytes: number;
  readonly filename: string;
}

const NOW_SEC = 'floor(extract(epoch from now()))::bigint';

/**
 * Looks up files that requests of a batch name, and pins those that the tenant of the batch can see, other than
 * result files. A file that the batch has pinned before is found again, even if it was deleted meanwhile, so that a
 * repeated ingestion finds the same. `for share` keeps a sweep from removing the bytes between the read and the
 * insert (docs/design/ends.md#pinned-files-of-requests). @throws postgres_unavailable
 */
export function pinFiles(
  pool: Pool,
  batchId: string,
  fileIds: readonly string[],
): Promise<PinnedFile[]> {
  return query<PinnedFile>(
    pool,
    `with found as (
       select f.id, f.object_key, f.bytes, f.filename from files f
       join batches b on b.id = $1 and b.tenant = f.tenant
       where f.id = any($2) and f.purpose <> 'batch_output' and f.bytes_gone_at is null
         and ((f.deleted_at is null and (f.expires_at is null or f.expires_at > ${NOW_SEC}))
           or exists (select 1 from batch_files p where p.batch_id = $1 and p.file_id = f.id))
       for share of f),
     pinned as (
       insert into batch_files (batch_id, file_id) select $1, id from found on conflict do nothing)
     select id, object_key as "objectKey", bytes, filename from found`,
    [batchId, fileIds],
  );
}
