import type { Pool } from 'pg';
import { legalPredecessors, OPEN_STATUSES } from '../../../core/batch/status';
import { type Database, query, storable } from '../sql';
import { stepSec } from './columns';
import { readState } from './read';
import type { BatchState, PhaseUpdate } from './types';

/**
 * Moves an open batch to a phase if the transition is legal and no cause of an end is claimed. Stores total
 * and models in any case. A missing or ended row is not an error. @throws postgres_unavailable
 */
export async function recordPhase(
  database: Database,
  batchId: string,
  { status, total, model, models }: PhaseUpdate,
): Promise<BatchState> {
  const isLegal = 'status = any($3) and stop_cause is null';
  const [row] = await query<Omit<BatchState, 'found'>>(
    database,
    `update batches set
       status = case when ${isLegal} then $2 else status end,
       in_progress_at = case when ${isLegal} then coalesce(in_progress_at, ${stepSec()}) else in_progress_at end,
       finalizing_at = case when ${isLegal} and $2 = 'finalizing' then coalesce(finalizing_at, ${stepSec()}) else finalizing_at end,
       total = greatest(total, coalesce($4::bigint, total)),
       model = coalesce($5::text, model),
       models = coalesce($6::jsonb, models),
       step_worker = case when $2 = 'in_progress' then null else step_worker end,
       updated_at = now()
     where id = $1 and status = any($7)
     returning status, stop_cause as "stopCause"`,
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
  return row === undefined ? readState(database, batchId) : { found: true, ...row };
}

/** Notes that the workflow of a batch has started. @throws postgres_unavailable */
export async function markStarted(pool: Pool, id: string): Promise<void> {
  await query(
    pool,
    `update batches set workflow_started_at = now() where id = $1 and workflow_started_at is null`,
    [id],
  );
}
