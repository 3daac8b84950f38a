import { encodeBatchRecord } from '../../core/journal/batch-record';
import { batchRecordKey } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchRow } from '../../storage/postgres/batches/types';

/**
 * Writes what the store must know of a batch before its first request is sent. Idempotent.
 * @throws object_store_failed
 */
export async function recordBatch(
  store: Pick<ObjectStore, 'putIfAbsent'>,
  row: BatchRow,
): Promise<void> {
  const record = encodeBatchRecord({
    version: 1,
    id: row.id,
    tenant: row.tenant,
    endpoint: row.endpoint,
    input_file_id: row.inputFileId,
    input_object_key: row.inputObjectKey,
    input_bytes: row.inputBytes,
    completion_window: row.completionWindow,
    metadata: row.metadata,
    output_expires_after: row.outputExpiresAfterSec,
    passes_headers: row.passesHeaders,
    created_at: row.createdAtSec,
    expires_at: row.expiresAtSec,
  });
  await store.putIfAbsent(batchRecordKey(row.id), record);
}
