import type { QueryResultRow } from 'pg';
import { NightshiftError } from '../../../core/errors';
import type { BatchRecord } from './batches';

/** Columns of a {@link BatchRecord}, for a select list or a returning clause. */
export const BATCH_COLUMNS = `id, tenant, endpoint, input_file_id, completion_window, metadata,
  status, stop_cause, model, total, completed, failed, input_tokens, cached_tokens, output_tokens,
  reasoning_tokens, total_tokens, errors, output_file_id, error_file_id, created_at, expires_at,
  in_progress_at, finalizing_at, completed_at, failed_at, expired_at, cancelling_at, cancelled_at`;

const CLOCK_SEC = 'floor(extract(epoch from now()))::bigint';

/**
 * SQL in a statement on `batches`: `clockSec`, else the database's clock, as a time of the batch in
 * whole Unix seconds. Never before a step that was noted earlier, whoever's clock that was taken from.
 */
export function stepSec(clockSec: string = CLOCK_SEC): string {
  return `greatest(created_at, in_progress_at, finalizing_at, cancelling_at, ${clockSec})`;
}

/** What {@link BATCH_COLUMNS} selects, typed as the driver of our pool delivers it. */
export interface BatchColumns extends QueryResultRow {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly input_file_id: string;
  readonly completion_window: string;
  readonly metadata: Record<string, string> | null;
  readonly status: BatchRecord['status'];
  readonly stop_cause: BatchRecord['stopCause'];
  readonly model: string | null;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  readonly total_tokens: number;
  readonly errors: unknown;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly in_progress_at: number | null;
  readonly finalizing_at: number | null;
  readonly completed_at: number | null;
  readonly failed_at: number | null;
  readonly expired_at: number | null;
  readonly cancelling_at: number | null;
  readonly cancelled_at: number | null;
}

/** The record of a row. @throws internal where a statement that must answer a row answered none */
export function toBatchRecord(row: BatchColumns | undefined): BatchRecord {
  if (row === undefined) throw new NightshiftError('internal', 'the statement answered no row');
  return {
    id: row.id,
    tenant: row.tenant,
    endpoint: row.endpoint,
    inputFileId: row.input_file_id,
    completionWindow: row.completion_window,
    metadata: row.metadata,
    status: row.status,
    stopCause: row.stop_cause,
    model: row.model,
    counts: { total: row.total, completed: row.completed, failed: row.failed },
    usage: {
      inputTokens: row.input_tokens,
      cachedTokens: row.cached_tokens,
      outputTokens: row.output_tokens,
      reasoningTokens: row.reasoning_tokens,
      totalTokens: row.total_tokens,
    },
    errors: row.errors,
    outputFileId: row.output_file_id,
    errorFileId: row.error_file_id,
    createdAtSec: row.created_at,
    expiresAtSec: row.expires_at,
    inProgressAtSec: row.in_progress_at,
    finalizingAtSec: row.finalizing_at,
    completedAtSec: row.completed_at,
    failedAtSec: row.failed_at,
    expiredAtSec: row.expired_at,
    cancellingAtSec: row.cancelling_at,
    cancelledAtSec: row.cancelled_at,
  };
}
