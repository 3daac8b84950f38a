import type { Pool, PoolClient } from 'pg';
import type { RequestCounts, Usage } from '../../core/batch/counts';
import type { BatchStatus, StopCause, TerminalStatus } from '../../core/batch/status';
import { deleteBatchHeaders } from './batch-headers';
import { notifyStop } from './stop-channel';
import { isTerminal, legalPredecessors, OPEN_STATUSES } from '../../core/batch/status';

/**
 * The workflow's side of the `batches` row: it alone writes lifecycle columns, always guarded by the
 * transition table, and never fails on zero rows but answers what the row says (execution §4).
 */
export interface BatchRecords {
  open(batchId: string): Promise<BatchRow | null>;
  /** Phase `in_progress` or `finalizing`; also keeps `total` right where the phase is not taken. */
  project(batchId: string, phase: PhaseUpdate): Promise<RowVerdict>;
  /** Claims the first cause of an end, or answers the one that is there. */
  claimStop(batchId: string, cause: StopCause): Promise<RowVerdict>;
  /** File rows and terminal status in one transaction; the row decides which status it is. */
  writeTerminal(record: TerminalRecord): Promise<TerminalStatus>;
  /** The end of a batch whose files could not be made: counts known from progress. */
  writeUnfinalized(batchId: string, cause: StopCause | null): Promise<RowVerdict>;
}

/** A batch as its workflow sees it; times in Unix seconds. */
export interface BatchRow {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputObjectKey: string | null;
  readonly inputBytes: number | null;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  /** Its requests carry headers of the create call. */
  readonly passesHeaders: boolean;
}

/** How the row stands after a statement: what the workflow has to obey (execution §4). */
export interface RowVerdict {
  readonly found: boolean;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
}

/** A step on the way; what is left out stays as it is. */
export interface PhaseUpdate {
  readonly status: 'in_progress' | 'finalizing';
  readonly total?: number;
  readonly model?: string | null;
  readonly models?: readonly string[];
}

/** The end of a batch with its files, written in one transaction. */
export interface TerminalRecord {
  readonly batchId: string;
  readonly cause: StopCause | null;
  readonly counts: RequestCounts;
  readonly usage: Usage;
  readonly model: string | null;
  readonly outputFile: ResultFile | null;
  readonly errorFile: ResultFile | null;
  /** Entries of `errors.data` where the input was refused. */
  readonly errors: readonly ErrorEntry[] | null;
}

/** A result file that lies in the object store and gets its row. */
export interface ResultFile {
  readonly id: string;
  readonly bytes: number;
  readonly filename: string;
  readonly objectKey: string;
}

/** One entry of a batch's `errors.data` as it is kept. */
export interface ErrorEntry {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}

export interface BatchRecordsOptions {
  /** Life of result files whose batch names none, seconds. */
  readonly outputFilesSec: number;
}

const NOW_SEC = 'greatest(created_at, extract(epoch from now())::bigint)';

const SYSTEM_ERROR: ErrorEntry = {
  code: 'system_error',
  message: 'The batch could not be carried on. Requests without an answer carry batch_failed.',
  param: null,
  line: null,
};

/** {@link BatchRecords} over a pool that the caller closes. */
export function createBatchRecords(pool: Pool, options: BatchRecordsOptions): BatchRecords {
  return {
    open: (batchId) => openRow(pool, batchId),
    project: (batchId, phase) => project(pool, batchId, phase),
    claimStop: (batchId, cause) => claimStop(pool, batchId, cause),
    writeTerminal: (record) =>
      inTransaction(pool, (client) => writeTerminal(client, record, options)),
    writeUnfinalized: (batchId, cause) =>
      inTransaction(pool, (client) => writeUnfinalized(client, batchId, cause)),
  };
}

async function openRow(pool: Pool, batchId: string): Promise<BatchRow | null> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `select id, tenant, endpoint, input_object_key, input_bytes, status, stop_cause, created_at, expires_at,
       passes_headers
     from batches where id = $1`,
    [batchId],
  );
  const row = rows[0];
  if (row === undefined) return null;
  return {
    id: batchId,
    tenant: String(row['tenant']),
    endpoint: String(row['endpoint']),
    inputObjectKey: row['input_object_key'] as string | null,
    inputBytes: row['input_bytes'] === null ? null : Number(row['input_bytes']),
    status: row['status'] as BatchStatus,
    stopCause: row['stop_cause'] as StopCause | null,
    createdAtSec: Number(row['created_at']),
    expiresAtSec: Number(row['expires_at']),
    passesHeaders: row['passes_headers'] === true,
  };
}

async function project(
  db: Pool | PoolClient,
  batchId: string,
  { status, total, model, models }: PhaseUpdate,
): Promise<RowVerdict> {
  const takes = 'status = any($3) and stop_cause is null';
  const { rows } = await db.query(
    `update batches set
       status = case when ${takes} then $2 else status end,
       in_progress_at = case when ${takes} then coalesce(in_progress_at, ${NOW_SEC}) else in_progress_at end,
       finalizing_at = case when ${takes} and $2 = 'finalizing' then coalesce(finalizing_at, ${NOW_SEC}) else finalizing_at end,
       total = greatest(total, coalesce($4::bigint, total)),
       model = coalesce($5::text, model),
       models = coalesce($6::jsonb, models),
       updated_at = now()
     where id = $1 and status = any($7)
     returning status, stop_cause`,
    [
      batchId,
      status,
      legalPredecessors(status),
      total ?? null,
      model == null ? null : storable(model),
      models === undefined ? null : JSON.stringify(models.map(storable)),
      [...OPEN_STATUSES],
    ],
  );
  return verdict(rows[0]) ?? verdictNow(db, batchId);
}

async function claimStop(pool: Pool, batchId: string, cause: StopCause): Promise<RowVerdict> {
  // One statement: whoever comes second waits for the row's lock and then finds the first cause.
  const { rows } = await pool.query(
    `update batches set
       stop_cause = coalesce(stop_cause, $2),
       stop_taken_at = coalesce(stop_taken_at, now()),
       status = case when stop_cause is null and $2 = 'cancelled' then 'cancelling' else status end,
       cancelling_at = case when stop_cause is null and $2 = 'cancelled' then ${NOW_SEC} else cancelling_at end,
       updated_at = now()
     where id = $1 and status = any($3)
     returning status, stop_cause, ${notifyStop('id')}`,
    [batchId, cause, [...OPEN_STATUSES]],
  );
  return verdict(rows[0]) ?? verdictNow(pool, batchId);
}

async function writeTerminal(
  client: PoolClient,
  record: TerminalRecord,
  options: BatchRecordsOptions,
): Promise<TerminalStatus> {
  const row = await lockRow(client, record.batchId);
  const invalidFile = record.errors !== null;
  const cause = row.stopCause ?? record.cause;
  const status: TerminalStatus = cause ?? (invalidFile ? 'failed' : 'completed');
  if (isTerminal(row.status)) return row.status;
  // A projection that nobody waited for may be missing: the way stays whole.
  if (status === 'completed') await project(client, record.batchId, { status: 'finalizing' });
  for (const file of [record.outputFile, record.errorFile]) {
    if (file !== null) await insertResultFile(client, { record, row, file, options });
  }
  await client.query(`delete from chunk_progress where batch_id = $1`, [record.batchId]);
  await deleteBatchHeaders(client, record.batchId);
  const errors = invalidFile ? record.errors : cause === 'failed' ? [SYSTEM_ERROR] : null;
  await writeEnd(client, {
    record,
    status,
    cause,
    errors: cause === null || cause === 'failed' ? errors : null,
  });
  return status;
}

interface End {
  readonly record: TerminalRecord;
  readonly status: TerminalStatus;
  readonly cause: StopCause | null;
  readonly errors: readonly ErrorEntry[] | null;
}

async function writeEnd(client: PoolClient, { record, status, cause, errors }: End): Promise<void> {
  const { counts, usage } = record;
  await client.query(
    `update batches set
       status = $2, ${status}_at = coalesce(${status}_at, ${NOW_SEC}), stop_cause = $3,
       stop_taken_at = case when $3::text is null then null else coalesce(stop_taken_at, now()) end,
       errors = $4, total = $5, completed = $6, failed = $7,
       input_tokens = $8, cached_tokens = $9, output_tokens = $10, reasoning_tokens = $11, total_tokens = $12,
       model = coalesce($13, model), output_file_id = $14, error_file_id = $15, updated_at = now()
     where id = $1 and status = any($16)`,
    [
      record.batchId,
      status,
      cause,
      errors === null ? null : JSON.stringify({ object: 'list', data: errors }),
      counts.total,
      counts.completed,
      counts.failed,
      usage.inputTokens,
      usage.cachedTokens,
      usage.outputTokens,
      usage.reasoningTokens,
      usage.totalTokens,
      record.model === null ? null : storable(record.model),
      record.outputFile?.id ?? null,
      record.errorFile?.id ?? null,
      legalPredecessors(status),
    ],
  );
}

/** Gives a result file its row; one that is there stays as it is. */
export async function insertResultFile(
  client: PoolClient,
  context: {
    record: TerminalRecord;
    row: Pick<LockedRow, 'tenant' | 'outputExpiresAfterSec'>;
    file: ResultFile;
    options: BatchRecordsOptions;
  },
): Promise<void> {
  const { record, row, file, options } = context;
  await client.query(
    `insert into files (id, tenant, purpose, filename, bytes, object_key, created_at, expires_at, batch_id)
     select $1, $2, 'batch_output', $3, $4, $5, now_sec, now_sec + $6, $7
     from (select extract(epoch from now())::bigint as now_sec) t
     on conflict (id) do nothing`,
    [
      file.id,
      row.tenant,
      file.filename,
      file.bytes,
      file.objectKey,
      row.outputExpiresAfterSec ?? options.outputFilesSec,
      record.batchId,
    ],
  );
}

async function writeUnfinalized(
  client: PoolClient,
  batchId: string,
  cause: StopCause | null,
): Promise<RowVerdict> {
  const row = await lockRow(client, batchId);
  if (!isTerminal(row.status)) {
    const end = row.stopCause ?? cause ?? 'failed';
    await deleteBatchHeaders(client, batchId);
    await client.query(
      `update batches set status = $2, stop_cause = coalesce(stop_cause, $2),
         ${end}_at = coalesce(${end}_at, ${NOW_SEC}), updated_at = now(), errors = $3
       where id = $1 and status = any($4)`,
      [
        batchId,
        end,
        end === 'failed' ? JSON.stringify({ object: 'list', data: [SYSTEM_ERROR] }) : null,
        legalPredecessors(end),
      ],
    );
  }
  return verdictNow(client, batchId);
}

interface LockedRow {
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly tenant: string;
  readonly outputExpiresAfterSec: number | null;
}

async function lockRow(client: PoolClient, batchId: string): Promise<LockedRow> {
  const { rows } = await client.query<Record<string, unknown>>(
    `select status, stop_cause, tenant, output_expires_after from batches where id = $1 for update`,
    [batchId],
  );
  const row = rows[0];
  if (row === undefined) throw new Error(`no row for ${batchId}`);
  return {
    status: row['status'] as BatchStatus,
    stopCause: row['stop_cause'] as StopCause | null,
    tenant: String(row['tenant']),
    outputExpiresAfterSec:
      row['output_expires_after'] === null ? null : Number(row['output_expires_after']),
  };
}

/** Postgres keeps neither NUL nor half a surrogate pair; a model's name may hold both. */
function storable(text: string): string {
  return text.replace(/\0|\p{Surrogate}/gu, '\uFFFD');
}

async function verdictNow(db: Pool | PoolClient, batchId: string): Promise<RowVerdict> {
  const { rows } = await db.query(`select status, stop_cause from batches where id = $1`, [
    batchId,
  ]);
  return verdict(rows[0]) ?? { found: false, status: 'validating', stopCause: null };
}

function verdict(row: unknown): RowVerdict | null {
  if (row === undefined) return null;
  const { status, stop_cause } = row as { status: BatchStatus; stop_cause: StopCause | null };
  return { found: true, status, stopCause: stop_cause };
}

async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}
