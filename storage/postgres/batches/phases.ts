import type { Pool } from 'pg';
import type { StopCause } from '../../../core/batch/status';
import { legalPredecessors, OPEN_STATUSES } from '../../../core/batch/status';
import { stepSec } from './columns';
import type { BatchRow, PhaseUpdate } from './records';
import type { RowVerdict, VerdictColumns } from './row-verdict';
import { VERDICT_COLUMNS, verdictOf } from './row-verdict';
import type { Database } from '../sql';
import { query, storable } from '../sql';
import { notifyStop } from '../stop-channel';

/** The batch as its workflow sees it; null where there is none. @throws postgres_unavailable */
export async function openRow(pool: Pool, batchId: string): Promise<BatchRow | null> {
  const [row] = await query<BatchRow>(
    pool,
    `select id, tenant, endpoint, input_object_key as "inputObjectKey",
       input_bytes as "inputBytes", ${VERDICT_COLUMNS}, created_at as "createdAtSec",
       expires_at as "expiresAtSec", passes_headers as "passesHeaders"
     from batches where id = $1`,
    [batchId],
  );
  return row ?? null;
}

/** Takes a phase where that is legal and nothing has been claimed. @throws postgres_unavailable */
export async function project(
  database: Database,
  batchId: string,
  { status, total, model, models }: PhaseUpdate,
): Promise<RowVerdict> {
  const takes = 'status = any($3) and stop_cause is null';
  const rows = await query<VerdictColumns>(
    database,
    `update batches set
       status = case when ${takes} then $2 else status end,
       in_progress_at = case when ${takes} then coalesce(in_progress_at, ${stepSec()}) else in_progress_at end,
       finalizing_at = case when ${takes} and $2 = 'finalizing' then coalesce(finalizing_at, ${stepSec()}) else finalizing_at end,
       total = greatest(total, coalesce($4::bigint, total)),
       model = coalesce($5::text, model),
       models = coalesce($6::jsonb, models),
       updated_at = now()
     where id = $1 and status = any($7)
     returning ${VERDICT_COLUMNS}`,
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
  return verdictOf(database, batchId, rows);
}

/**
 * Claims the first cause of an end. One statement: whoever comes second waits for the row's lock and
 * then finds the first cause. @throws postgres_unavailable
 */
export async function claimStop(
  database: Database,
  batchId: string,
  cause: StopCause,
): Promise<RowVerdict> {
  const rows = await query<VerdictColumns>(
    database,
    `update batches set
       stop_cause = coalesce(stop_cause, $2),
       stop_taken_at = coalesce(stop_taken_at, now()),
       status = case when stop_cause is null and $2 = 'cancelled' then 'cancelling' else status end,
       cancelling_at = case when stop_cause is null and $2 = 'cancelled' then ${stepSec()} else cancelling_at end,
       updated_at = now()
     where id = $1 and status = any($3)
     returning ${VERDICT_COLUMNS}, ${notifyStop('id')}`,
    [batchId, cause, [...OPEN_STATUSES]],
  );
  return verdictOf(database, batchId, rows);
}
