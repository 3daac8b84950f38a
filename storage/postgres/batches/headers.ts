import type { Pool, PoolClient } from 'pg';
import type { SealedHeaders } from '../../../platform/header-vault';
import { query } from '../sql';

/** Keeps the headers of a new batch, in the transaction that makes it. @throws postgres_unavailable */
export async function insertBatchHeaders(
  client: PoolClient,
  batchId: string,
  { keyId, sealed }: SealedHeaders,
): Promise<void> {
  await query(client, `insert into batch_headers (batch_id, key_id, sealed) values ($1, $2, $3)`, [
    batchId,
    keyId,
    sealed,
  ]);
}

/** The headers of a batch; null where it has none any more. @throws postgres_unavailable */
export async function findBatchHeaders(pool: Pool, batchId: string): Promise<SealedHeaders | null> {
  const text = `select key_id as "keyId", sealed from batch_headers where batch_id = $1`;
  const [row] = await query<{ keyId: string; sealed: Buffer }>(pool, text, [batchId]);
  return row ?? null;
}

/** Forgets them, in the transaction that ends the batch. */
export async function deleteBatchHeaders(client: PoolClient, batchId: string): Promise<void> {
  await client.query(`delete from batch_headers where batch_id = $1`, [batchId]);
}
