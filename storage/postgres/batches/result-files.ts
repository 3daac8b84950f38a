import type { PoolClient } from 'pg';
import { query, storable } from '../sql';
import type { BatchRow, ResultFile, TerminalRecord } from './types';

/**
 * SQL that writes counts, usage, model and files into the row of batch $1; its values are
 * {@link resultValues}.
 */
export const SET_RESULT = `total = $2, completed = $3, failed = $4,
  input_tokens = $5, cached_tokens = $6, output_tokens = $7, reasoning_tokens = $8, total_tokens = $9,
  model = coalesce($10, model), output_file_id = $11, error_file_id = $12, updated_at = now()`;

/** $1 to $12 of a statement with {@link SET_RESULT}. */
export function resultValues(record: TerminalRecord): unknown[] {
  const { counts, usage, model } = record;
  return [
    record.batchId,
    counts.total,
    counts.completed,
    counts.failed,
    usage.inputTokens,
    usage.cachedTokens,
    usage.outputTokens,
    usage.reasoningTokens,
    usage.totalTokens,
    model === null ? null : storable(model),
    record.outputFile?.id ?? null,
    record.errorFile?.id ?? null,
  ];
}

/**
 * Inserts rows for the result files of a batch; existing rows stay as they are. `lifeSec` applies if the
 * batch sets no life for its files. @throws postgres_unavailable
 */
export async function insertResultFiles(
  client: PoolClient,
  batch: BatchRow,
  { files, lifeSec }: { files: readonly (ResultFile | null)[]; lifeSec: number | null },
): Promise<void> {
  for (const file of files) {
    if (file === null) continue;
    await query(
      client,
      `insert into files (id, tenant, purpose, filename, bytes, object_key, created_at, expires_at, batch_id)
       select $1, $2, 'batch_output', $3, $4, $5, now_sec, now_sec + $6, $7
       from (select floor(extract(epoch from now()))::bigint as now_sec) t
       on conflict (id) do nothing`,
      [
        file.id,
        batch.tenant,
        file.filename,
        file.bytes,
        file.objectKey,
        batch.outputExpiresAfterSec ?? lifeSec,
        batch.id,
      ],
    );
  }
}
