import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { batchIdFromBytes, fileIdFromBytes } from '../../core/names/ids';

/** Columns of a batch row, by their names in the database. */
export type BatchOverrides = Readonly<Record<string, unknown>>;

/** Inserts a row into `batches`; by default `validating` with a window of an hour. */
export async function insertBatch(pool: Pool, over: BatchOverrides = {}): Promise<string> {
  const nowSec = Math.floor(Date.now() / 1000);
  const row: Record<string, unknown> = {
    id: batchIdFromBytes(randomBytes(16)),
    tenant: 't',
    endpoint: '/v1/embeddings',
    input_file_id: 'file-x',
    completion_window: '1h',
    created_at: nowSec,
    expires_at: nowSec + 3600,
    ...over,
  };
  await insert(pool, 'batches', row);
  return String(row['id']);
}

/** Inserts a row into `files`; by default an upload that never expires. */
export async function insertFile(
  pool: Pool,
  over: Readonly<Record<string, unknown>> = {},
): Promise<{ id: string; key: string }> {
  const id = fileIdFromBytes(randomBytes(16));
  const row: Record<string, unknown> = {
    id,
    tenant: 't',
    purpose: 'batch',
    filename: 'input.jsonl',
    bytes: 5,
    object_key: `files/t/${id}`,
    created_at: Math.floor(Date.now() / 1000),
    ...over,
  };
  await insert(pool, 'files', row);
  return { id: String(row['id']), key: String(row['object_key']) };
}

async function insert(pool: Pool, table: string, row: Record<string, unknown>): Promise<void> {
  const names = Object.keys(row);
  const places = names.map((_, i) => `$${i + 1}`);
  await pool.query(
    `insert into ${table} (${names.join(', ')}) values (${places.join(', ')})`,
    Object.values(row),
  );
}
