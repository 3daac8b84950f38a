import type { Pool, PoolClient } from 'pg';
import type { SealedHeaders } from '../../../platform/header-vault';
import { query } from '../sql';

/** Stores the headers of a new batch, in the transaction that creates it. @throws postgres_unavailable */
export async function insertBatchHeaders(
  client: PoolClient,
  batchId: string,
  { keyId, sealed }: SealedHeaders,
): Promise<void> {
  const text = `insert into batch_headers (batch_id, key_id, sealed) values ($1, $2, $3)`;
  await query(client, text, [batchId, keyId, sealed]);
}

/** The headers of a batch; null if it has none or has ended. @throws postgres_unavailable */
export async function findBatchHeaders(pool: Pool, batchId: string): Promise<SealedHeaders | null> {
  const text = `select key_id as "keyId", sealed from batch_headers where batch_id = $1`;
  const [row] = await query<{ keyId: string; sealed: Buffer }>(pool, text, [batchId]);
  return row ?? null;
}

/** Deletes the headers of a batch, in the transaction that ends it. @throws postgres_unavailable */
export async function deleteBatchHeaders(client: PoolClient, batchId: string): Promise<void> {
  await query(client, `delete from batch_headers where batch_id = $1`, [batchId]);
}
