import type { Pool } from 'pg';
import type { BatchRecord } from '../../core/journal/batch-record';
import type { StopCause } from '../../core/batch/status';
import { query } from './sql';

/**
 * The statements of a restore: they bring a database that is older than its object store up to what the
 * store knows (docs/design/ends.md#lost-rows). All methods: @throws postgres_unavailable
 */
export interface RestoredRows {
  /** The given batches that have no row. */
  withoutRow(batchIds: readonly string[]): Promise<string[]>;
  /**
   * Inserts the row of a batch as it was created, with a cause if it cannot be continued. It counts as
   * started, because it was planned, so reconcile need not leave its start to the API. False if there is a
   * row.
   */
  insertBatch(record: BatchRecord, cause: StopCause | null): Promise<boolean>;
  /** Files after `afterSeq` that have bytes according to their rows. */
  filesWithBytes(afterSeq: number, limit: number): Promise<StoredFile[]>;
  /** Notes that files were deleted and their bytes removed. */
  markGone(fileIds: readonly string[]): Promise<void>;
  /** Pins the files that requests of a batch name, whose row is inserted next. */
  pinFiles(batchId: string, fileIds: readonly string[]): Promise<void>;
  /** Makes all later epochs higher than any that a process took from the lost part of the database. */
  skipEpochs(): Promise<void>;
  /**
   * Lets no job be created at a provider for a while: a create call of the lost part of the database may
   * still be on its way, or its job not listed yet (docs/design/provider-jobs.md#the-lease).
   */
  holdCreates(): Promise<void>;
}

/** A file and its place in the order of insertion. */
export interface StoredFile {
  readonly id: string;
  readonly seq: number;
  readonly objectKey: string;
}

/** More chunk attempts than any installation makes between two backups. */
const SKIPPED_EPOCHS = 1_000_000_000;
/** Longer than the longest lease and the longest time until a created job is listed. */
const CREATES_HELD = '10 minutes';
const NOW_SEC = 'floor(extract(epoch from now()))::bigint';

/** {@link RestoredRows} over a pool that the caller ends. */
export function createRestoredRows(pool: Pool): RestoredRows {
  return {
    withoutRow: (batchIds) => batchesWithoutRow(pool, batchIds),
    insertBatch: (record, cause) => insertBatch(pool, record, cause),
    filesWithBytes: (afterSeq, limit) =>
      query<StoredFile>(
        pool,
        `select id, seq, object_key as "objectKey" from files
         where bytes_gone_at is null and seq > $1 order by seq limit $2`,
        [afterSeq, limit],
      ),
    markGone: async (fileIds) => {
      await query(
        pool,
        `update files set deleted_at = coalesce(deleted_at, ${NOW_SEC}), bytes_gone_at = ${NOW_SEC}
         where id = any($1) and bytes_gone_at is null`,
        [fileIds],
      );
    },
    pinFiles: async (batchId, fileIds) => {
      const statement = `insert into batch_files (batch_id, file_id)
        select $1, * from unnest($2::text[]) on conflict do nothing`;
      await query(pool, statement, [batchId, fileIds]);
    },
    skipEpochs: async () => {
      const statement = `select setval('chunk_epoch', (select last_value from chunk_epoch) + $1)`;
      await query(pool, statement, [SKIPPED_EPOCHS]);
    },
    holdCreates: async () => {
      const statement = 'update installation set creates_held_until = now() + $1::interval';
      await query(pool, statement, [CREATES_HELD]);
      // What look-ups have shown is older than the jobs that were created since the backup.
      await query(pool, 'update provider_jobs set candidates = null where external_id is null');
    },
  };
}

/** The given batches that have no row. @throws postgres_unavailable */
export async function batchesWithoutRow(
  pool: Pool,
  batchIds: readonly string[],
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    pool,
    `select r.id from unnest($1::text[]) as r (id)
     where not exists (select 1 from batches b where b.id = r.id)`,
    [batchIds],
  );
  return rows.map(({ id }) => id);
}

async function insertBatch(
  pool: Pool,
  record: BatchRecord,
  cause: StopCause | null,
): Promise<boolean> {
  const rows = await query(
    pool,
    `insert into batches
       (id, tenant, endpoint, input_file_id, input_object_key, input_bytes, completion_window, metadata,
        output_expires_after, passes_headers, created_at, expires_at, stop_cause, workflow_started_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now())
     on conflict (id) do nothing returning id`,
    [
      record.id,
      record.tenant,
      record.endpoint,
      record.input_file_id,
      record.input_object_key,
      record.input_bytes,
      record.completion_window,
      record.metadata === null ? null : JSON.stringify(record.metadata),
      record.output_expires_after,
      record.passes_headers,
      record.created_at,
      record.expires_at,
      cause,
    ],
  );
  return rows.length > 0;
}
