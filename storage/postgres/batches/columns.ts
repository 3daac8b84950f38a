import type { QueryResultRow } from 'pg';
import type { RequestCounts, Usage } from '../../../core/batch/counts';
import { NightshiftError } from '../../../core/errors';
import type { BatchRow, OpenBatch } from './types';

/** A {@link BatchRow} as a statement returns it: counts and usage are columns of their own. */
export type BatchColumns = QueryResultRow &
  Omit<BatchRow, 'counts' | 'usage'> &
  RequestCounts &
  Usage;

const BATCH: Readonly<Record<keyof Named<BatchColumns>, string>> = {
  id: 'id',
  tenant: 'tenant',
  endpoint: 'endpoint',
  inputFileId: 'input_file_id',
  inputObjectKey: 'input_object_key',
  inputBytes: 'input_bytes',
  completionWindow: 'completion_window',
  metadata: 'metadata',
  outputExpiresAfterSec: 'output_expires_after',
  passesHeaders: 'passes_headers',
  traceContext: 'trace_context',
  status: 'status',
  stopCause: 'stop_cause',
  model: 'model',
  total: 'total',
  completed: 'completed',
  failed: 'failed',
  inputTokens: 'input_tokens',
  cachedTokens: 'cached_tokens',
  outputTokens: 'output_tokens',
  reasoningTokens: 'reasoning_tokens',
  totalTokens: 'total_tokens',
  errors: 'errors',
  outputFileId: 'output_file_id',
  errorFileId: 'error_file_id',
  createdAtSec: 'created_at',
  expiresAtSec: 'expires_at',
  inProgressAtSec: 'in_progress_at',
  finalizingAtSec: 'finalizing_at',
  completedAtSec: 'completed_at',
  failedAtSec: 'failed_at',
  expiredAtSec: 'expired_at',
  cancellingAtSec: 'cancelling_at',
  cancelledAtSec: 'cancelled_at',
};

const OPEN_BATCH: Readonly<Record<keyof OpenBatch, string>> = {
  seq: 'seq',
  id: 'id',
  tenant: 'tenant',
  endpoint: 'endpoint',
  inputFileId: 'input_file_id',
  status: 'status',
  stopCause: 'stop_cause',
  stopTaken: 'stop_taken_at is not null',
  startSeen: 'workflow_started_at is not null',
  createdAtSec: 'created_at',
  expiresAtSec: 'expires_at',
  cancellingAtSec: 'cancelling_at',
  startedAtSec: 'floor(extract(epoch from workflow_started_at))::bigint',
  restarts: 'restarts',
  restartedAtSec: 'floor(extract(epoch from restarted_at))::bigint',
  overdueMs: 'overdue_ms',
};

/** {@link BatchColumns}, for a select list or a returning clause. */
export const BATCH_COLUMNS = selectList(BATCH);

/** Columns of an {@link OpenBatch}, for a select list. */
export const OPEN_BATCH_COLUMNS = selectList(OPEN_BATCH);

/** SQL: the database's clock in whole Unix seconds. */
export const CLOCK_SEC = 'floor(extract(epoch from now()))::bigint';

/**
 * SQL in a statement on `batches`: `clockSec` as the time of a step, in whole Unix seconds. API servers
 * and the database have clocks of their own, so a step is never noted before an earlier one.
 */
export function stepSec(clockSec: string = CLOCK_SEC): string {
  return `greatest(created_at, in_progress_at, finalizing_at, cancelling_at, ${clockSec})`;
}

/** The row of a statement that returns one. @throws internal if it returned none */
export function toBatchRow(columns: BatchColumns | undefined): BatchRow {
  if (columns === undefined) {
    throw new NightshiftError('internal', 'the statement returned no row');
  }
  const { total, completed, failed, ...others } = named(columns);
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens, totalTokens, ...row } = others;
  return {
    ...row,
    counts: { total, completed, failed },
    usage: { inputTokens, cachedTokens, outputTokens, reasoningTokens, totalTokens },
  };
}

/** Drops other columns that the statement returns, such as the result of `pg_notify`. */
function named(columns: BatchColumns): BatchColumns {
  const names = Object.keys(BATCH);
  return Object.fromEntries(names.map((name) => [name, columns[name]])) as BatchColumns;
}

/** The keys of `T` that have names, without the index signature of `QueryResultRow`. */
type Named<T> = { [K in keyof T as string extends K ? never : K]: T[K] };

function selectList(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, sql]) => `${sql} as "${name}"`)
    .join(', ');
}
