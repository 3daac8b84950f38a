import type { PoolClient } from 'pg';
import type { BatchStatus, StopCause, TerminalStatus } from '../../../core/batch/status';
import { isTerminal, legalPredecessors } from '../../../core/batch/status';
import { NightshiftError } from '../../../core/errors';
import { stepSec } from './columns';
import { deleteBatchHeaders } from './headers';
import { claimStop, project } from './phases';
import type { BatchRecordsOptions, ErrorEntry, ResultFile, TerminalRecord } from './records';
import { showCounts } from '../progress-sql';
import type { RowVerdict } from './row-verdict';
import { verdictOf } from './row-verdict';
import { query, storable } from '../sql';

/** The last statements of a batch, each in a transaction of the caller (execution §4). */

const SYSTEM_ERROR: ErrorEntry = {
  code: 'system_error',
  message: 'The batch could not be carried on. Requests without an answer carry batch_failed.',
  param: null,
  line: null,
};

const UNFINALIZED: ErrorEntry = {
  code: 'system_error',
  message: 'The result files could not be written in time. Answers are kept; ask your operator.',
  param: null,
  line: null,
};

/**
 * File rows and terminal status; the row decides which status it is. A batch that has ended keeps its
 * end. @throws not_found, postgres_unavailable
 */
export async function writeTerminal(
  client: PoolClient,
  record: TerminalRecord,
  options: BatchRecordsOptions,
): Promise<TerminalStatus> {
  const row = await lockRow(client, record.batchId);
  if (row === null) throw new NightshiftError('not_found', `there is no batch ${record.batchId}`);
  const cause = row.stopCause ?? record.cause;
  const status: TerminalStatus = cause ?? (record.errors === null ? 'completed' : 'failed');
  if (isTerminal(row.status)) return row.status;
  // A projection that nobody waited for, or a claim that a restored row knows nothing of, may be
  // missing: the way stays whole.
  if (status === 'completed') await project(client, record.batchId, { status: 'finalizing' });
  if (cause !== null && row.stopCause === null) await claimStop(client, record.batchId, cause);
  for (const file of [record.outputFile, record.errorFile]) {
    if (file !== null) await insertResultFile(client, { record, row, file, options });
  }
  await forgetWork(client, record.batchId);
  await writeEnd(client, { record, status, cause });
  return status;
}

/**
 * The end of a batch whose files could not be made: counts known from progress, no files.
 * @throws postgres_unavailable
 */
export async function writeUnfinalized(
  client: PoolClient,
  batchId: string,
  cause: StopCause | null,
): Promise<RowVerdict> {
  const row = await lockRow(client, batchId);
  if (row !== null && !isTerminal(row.status)) {
    const end = row.stopCause ?? cause ?? 'failed';
    if (row.stopCause === null) await claimStop(client, batchId, end);
    await showCounts(client, [batchId]);
    await forgetWork(client, batchId);
    await query(
      client,
      `update batches set status = $2, stop_taken_at = coalesce(stop_taken_at, now()),
         ${end}_at = coalesce(${end}_at, ${stepSec()}), updated_at = now(), errors = $3
       where id = $1 and status = any($4)`,
      [batchId, end, end === 'failed' ? errorList([UNFINALIZED]) : null, legalPredecessors(end)],
    );
  }
  return verdictOf(client, batchId);
}

/** Gives a result file its row; one that is there stays as it is. @throws postgres_unavailable */
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
  await query(
    client,
    `insert into files (id, tenant, purpose, filename, bytes, object_key, created_at, expires_at, batch_id)
     select $1, $2, 'batch_output', $3, $4, $5, now_sec, now_sec + $6, $7
     from (select floor(extract(epoch from now()))::bigint as now_sec) t
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

interface End {
  readonly record: TerminalRecord;
  readonly status: TerminalStatus;
  readonly cause: StopCause | null;
}

async function writeEnd(client: PoolClient, { record, status, cause }: End): Promise<void> {
  const errors = errorsOf(record, cause);
  await query(
    client,
    `update batches set ${SET_RESULT}, errors = $13,
       status = $14, ${status}_at = coalesce(${status}_at, ${stepSec()}), stop_cause = $15,
       stop_taken_at = case when $15::text is null then null else coalesce(stop_taken_at, now()) end
     where id = $1 and status = any($16)`,
    [
      ...resultValues(record),
      errors === null ? null : errorList(errors),
      status,
      cause,
      legalPredecessors(status),
    ],
  );
}

/** What a delivery writes into the row of its batch, $1; its values are {@link resultValues}. */
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

/** Why it failed; a cancelled or expired batch has no errors, also where its file was refused. */
function errorsOf(
  { errors }: TerminalRecord,
  cause: StopCause | null,
): readonly ErrorEntry[] | null {
  if (cause === null) return errors;
  return cause === 'failed' ? (errors ?? [SYSTEM_ERROR]) : null;
}

function errorList(data: readonly ErrorEntry[]): string {
  return JSON.stringify({ object: 'list', data });
}

/** What only an open batch needs: progress of its chunks, headers of its create call. */
async function forgetWork(client: PoolClient, batchId: string): Promise<void> {
  await query(client, `delete from chunk_progress where batch_id = $1`, [batchId]);
  await deleteBatchHeaders(client, batchId);
}

interface LockedRow {
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly tenant: string;
  readonly outputExpiresAfterSec: number | null;
}

async function lockRow(client: PoolClient, batchId: string): Promise<LockedRow | null> {
  const [row] = await query<LockedRow>(
    client,
    `select status, stop_cause as "stopCause", tenant,
       output_expires_after as "outputExpiresAfterSec"
     from batches where id = $1 for update`,
    [batchId],
  );
  return row ?? null;
}
