import type { Pool, PoolClient } from 'pg';
import { type IdempotencyKey, type Once, once } from '../idempotency';
import { inTransaction, query } from '../sql';
import { admitBatch, type TenantLimits } from '../tenant-limits';
import { BATCH_COLUMNS, type BatchColumns, toBatchRow } from './columns';
import { insertBatchHeaders } from './headers';
import type { BatchRow, NewBatch } from './types';

/** Inserts a batch that is `validating`. @throws rate_limited, postgres_unavailable, commit_unknown */
export function insertBatch(pool: Pool, batch: NewBatch, limits: TenantLimits): Promise<BatchRow> {
  return inTransaction(pool, (client) => admitAndInsert(client, batch, limits));
}

/** {@link insertBatch} for a request that has an idempotency key. */
export function insertBatchOnce(
  pool: Pool,
  { batch, key }: { readonly batch: NewBatch; readonly key: IdempotencyKey },
  limits: TenantLimits,
): Promise<Once<BatchRow>> {
  return once(pool, { key, objectId: batch.id }, (client) => admitAndInsert(client, batch, limits));
}

async function admitAndInsert(
  client: PoolClient,
  batch: NewBatch,
  limits: TenantLimits,
): Promise<BatchRow> {
  await admitBatch(client, batch.tenant, limits);
  const row = await insertRow(client, batch);
  if (batch.headers !== undefined) await insertBatchHeaders(client, batch.id, batch.headers);
  return row;
}

/**
 * The input file is pinned by the same statement: object and size of a file that the tenant can see now
 * are copied into the row, and a later delete of the file changes nothing. `for share` keeps a sweep
 * from removing the bytes between the read and the insert. (docs/design/ends.md#pinned-input-files)
 */
async function insertRow(client: PoolClient, batch: NewBatch): Promise<BatchRow> {
  const [row] = await query<BatchColumns>(
    client,
    `with input as (
       select object_key, bytes from files
       where id = $4 and tenant = $2 and purpose = 'batch' and deleted_at is null
         and (expires_at is null or expires_at > $8)
       for share)
     insert into batches
       (id, tenant, endpoint, input_file_id, completion_window, metadata, output_expires_after,
        created_at, expires_at, passes_headers, inserted_at, trace_context,
        input_object_key, input_bytes)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now(), $11,
       (select object_key from input), (select bytes from input))
     returning ${BATCH_COLUMNS}`,
    [
      batch.id,
      batch.tenant,
      batch.endpoint,
      batch.inputFileId,
      batch.completionWindow,
      batch.metadata === null ? null : JSON.stringify(batch.metadata),
      batch.outputExpiresAfterSec,
      batch.createdAtSec,
      batch.expiresAtSec,
      batch.headers !== undefined,
      batch.traceContext == null ? null : JSON.stringify(batch.traceContext),
    ],
  );
  return toBatchRow(row);
}
