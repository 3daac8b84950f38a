import type { PoolClient, QueryResultRow } from 'pg';
import type { StopCause, TerminalStatus } from '../../../core/batch/status';
import { isTerminal, legalPredecessors } from '../../../core/batch/status';
import { NightshiftError } from '../../../core/errors';
import { showCounts } from '../progress-sql';
import { query } from '../sql';
import { claimCause } from './claim-cause';
import { stepSec } from './columns';
import { deleteBatchHeaders } from './headers';
import { recordPhase } from './phases';
import { lockBatch, readState } from './read';
import { insertResultFiles, resultValues, SET_RESULT } from './result-files';
import { AGE_SEC } from './measured-times';
import type { BatchRow, BatchState, EndedBatch, ErrorEntry, TerminalRecord } from './types';

/**
 * The statements that end a batch, in the caller's transaction. The cause in the row decides how the batch
 * ends, and a terminal status never changes (docs/design/read-model.md#terminal-record).
 */

/** What a statement that ends a batch leaves. */
export interface Ending<State> {
  readonly state: State;
  /** Null if the batch had ended before. */
  readonly ended: EndedBatch | null;
}

const SYSTEM_ERROR: ErrorEntry = {
  code: 'system_error',
  message: 'The batch could not be continued. Requests without an answer carry batch_failed.',
  param: null,
  line: null,
};

const UNFINALIZED: ErrorEntry = {
  code: 'system_error',
  message: 'The result files could not be written in time. Answers are kept: ask your operator.',
  param: null,
  line: null,
};

/**
 * Writes file rows and terminal status; the row's cause, if it has one, overrides the cause of the
 * record. `lifeSec` is the life of files whose batch names none. Returns the status that the row has
 * afterwards, and the end if this call wrote it. @throws not_found, postgres_unavailable
 */
export async function recordEnd(
  client: PoolClient,
  record: TerminalRecord,
  lifeSec: number | null,
): Promise<Ending<TerminalStatus>> {
  const { batchId, outputFile, errorFile } = record;
  const row = await lockExisting(client, batchId);
  const cause = row.stopCause ?? record.cause;
  const status: TerminalStatus = cause ?? (record.errors === null ? 'completed' : 'failed');
  if (isTerminal(row.status)) return { state: row.status, ended: null };
  // The workflow does not wait until its phases are written, and a row from a backup may lack a claim.
  // Write what is missing first, so that every transition is legal.
  if (status === 'completed') await recordPhase(client, batchId, { status: 'finalizing' });
  if (cause !== null && row.stopCause === null) await claimCause(client, batchId, cause);
  await insertResultFiles(client, row, { files: [outputFile, errorFile], lifeSec });
  await deleteWork(client, batchId);
  const ended = await writeEnd(client, { record, status, cause });
  return { state: status, ended };
}

/**
 * Ends a batch whose result files could not be made, with the counts that progress has shown.
 * @throws postgres_unavailable
 */
export async function recordUnfinalized(
  client: PoolClient,
  batchId: string,
  cause: StopCause | null,
): Promise<Ending<BatchState>> {
  const row = await lockBatch(client, batchId);
  let ended: EndedBatch | null = null;
  if (row !== null && !isTerminal(row.status)) {
    const end = row.stopCause ?? cause ?? 'failed';
    if (row.stopCause === null) await claimCause(client, batchId, end);
    await showCounts(client, [batchId]);
    await deleteWork(client, batchId);
    const [written] = await query<EndColumns>(
      client,
      `update batches set status = $2, stop_taken_at = coalesce(stop_taken_at, now()),
         ${end}_at = coalesce(${end}_at, ${stepSec()}), updated_at = now(), errors = $3
       where id = $1 and status = any($4)
       returning ${END_COLUMNS}`,
      [batchId, end, end === 'failed' ? errorList([UNFINALIZED]) : null, legalPredecessors(end)],
    );
    ended = endedBatch(written, { status: end, refused: false });
  }
  return { state: await readState(client, batchId), ended };
}

/**
 * Writes files, counts and usage of a batch that ended without them. Its status stays, and so do files that
 * it has. @throws not_found, conflict if the batch has not ended, postgres_unavailable
 */
export async function recordLateDelivery(
  client: PoolClient,
  record: TerminalRecord,
  lifeSec: number | null,
): Promise<TerminalStatus> {
  const { batchId, outputFile, errorFile } = record;
  const row = await lockExisting(client, batchId);
  if (!isTerminal(row.status)) {
    throw new NightshiftError('conflict', `${batchId} is ${row.status}: its workflow delivers it`);
  }
  if (row.outputFileId !== null || row.errorFileId !== null) return row.status;
  await insertResultFiles(client, row, { files: [outputFile, errorFile], lifeSec });
  await query(client, `update batches set ${SET_RESULT} where id = $1`, resultValues(record));
  return row.status;
}

/** @throws not_found */
async function lockExisting(client: PoolClient, batchId: string): Promise<BatchRow> {
  const row = await lockBatch(client, batchId);
  if (row === null) throw new NightshiftError('not_found', `there is no batch ${batchId}`);
  return row;
}

interface End {
  readonly record: TerminalRecord;
  readonly status: TerminalStatus;
  readonly cause: StopCause | null;
}

async function writeEnd(
  client: PoolClient,
  { record, status, cause }: End,
): Promise<EndedBatch | null> {
  const errors = errorsOf(record, cause);
  const [written] = await query<EndColumns>(
    client,
    `update batches set ${SET_RESULT}, errors = $13,
       status = $14, ${status}_at = coalesce(${status}_at, ${stepSec()}), stop_cause = $15,
       stop_taken_at = case when $15::text is null then null else coalesce(stop_taken_at, now()) end
     where id = $1 and status = any($16)
     returning ${END_COLUMNS}`,
    [
      ...resultValues(record),
      errors === null ? null : errorList(errors),
      status,
      cause,
      legalPredecessors(status),
    ],
  );
  return endedBatch(written, { status, refused: cause === null && status === 'failed' });
}

/** What a statement returns about the end that it wrote. */
type EndColumns = QueryResultRow & Omit<EndedBatch, 'status' | 'refused'>;

const END_COLUMNS = `total as requests, ${AGE_SEC} as "ageSec",
  extract(epoch from now() - ingestion_started_at)::float8 as "processingSec",
  case when finalizing_at is not null then 'finalizing'
       when in_progress_at is not null then 'in_progress' else 'queued' end as phase`;

/** Null if the statement changed no row. */
function endedBatch(
  written: EndColumns | undefined,
  { status, refused }: Pick<EndedBatch, 'status' | 'refused'>,
): EndedBatch | null {
  if (written === undefined) return null;
  const { requests, phase, ageSec, processingSec } = written;
  return { status, refused, requests, phase, ageSec: Math.max(0, ageSec), processingSec };
}

/** The errors of a failed batch. A cancelled or expired batch has none, even if its file was refused. */
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

/** Deletes rows that only an open batch needs: progress of its chunks, headers of its create call. */
async function deleteWork(client: PoolClient, batchId: string): Promise<void> {
  await query(client, `delete from chunk_progress where batch_id = $1`, [batchId]);
  await deleteBatchHeaders(client, batchId);
}
