import type { Pool } from 'pg';
import { RESTARTS_TOGETHER_SEC } from '../../../core/batch/last-resort';
import { OPEN_STATUSES } from '../../../core/batch/status';
import { query } from '../sql';

/** Reconcile runs once a minute. After a longer gap, in which no worker ran, only this time is added. */
const MAX_ADDED_SEC = 120;

/**
 * Counts a restart of a closed workflow. If the last one was more than 10 minutes ago, counts from 1 again.
 * @throws postgres_unavailable
 */
export async function noteRestart(pool: Pool, batchId: string): Promise<void> {
  await query(
    pool,
    `update batches set restarted_at = now(), restarts = 1 + case
       when restarted_at > now() - make_interval(secs => $2) then restarts else 0 end
     where id = $1`,
    [batchId, RESTARTS_TOGETHER_SEC],
  );
}

/**
 * Adds the time since the last call to each open batch that is overdue; returns the sums, ms by id.
 * @throws postgres_unavailable
 */
export async function addOverdue(
  pool: Pool,
  batchIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await query<{ id: string; ms: number }>(
    pool,
    `update batches set overdue_seen_at = now(), overdue_ms = overdue_ms + least(
         extract(epoch from now() - coalesce(overdue_seen_at, now())), $3) * 1000
     where id = any($1) and status = any($2)
     returning id, overdue_ms as ms`,
    [batchIds, [...OPEN_STATUSES], MAX_ADDED_SEC],
  );
  return new Map(rows.map(({ id, ms }) => [id, ms]));
}

/** Sets the overdue time to zero. @throws postgres_unavailable */
export async function resetOverdue(pool: Pool, batchId: string): Promise<void> {
  await query(pool, `update batches set overdue_ms = 0 where id = $1`, [batchId]);
}
