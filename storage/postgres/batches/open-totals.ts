import type { Pool } from 'pg';
import type { OPEN_STATUSES } from '../../../core/batch/status';
import { query } from '../sql';

/** The open batches of one status. */
export interface OpenTotals {
  readonly status: (typeof OPEN_STATUSES)[number];
  readonly batches: number;
  /** Past the end of their window by more than the given time. */
  readonly overdue: number;
  /** How long the batch that has been longest in this status is in it, s. */
  readonly oldestSec: number;
  /** Requests without an answer; 0 before the input file is read. */
  readonly openLines: number;
}

/**
 * Sums over all open batches, one row for each status that has any. One pass over the index `batches_open`, so
 * batches that have ended cost nothing. The statuses are literals, because the planner cannot match parameters with
 * the condition of the index. @throws postgres_unavailable
 */
export function openTotals(pool: Pool, overdueAfterSec: number): Promise<OpenTotals[]> {
  return query<OpenTotals & Record<string, unknown>>(
    pool,
    `select status, count(*)::int as batches,
       (count(*) filter (where expires_at + $1 < now_sec))::int as overdue,
       greatest(0, max(now_sec - case status
         when 'in_progress' then in_progress_at when 'finalizing' then finalizing_at
         when 'cancelling' then cancelling_at else created_at end))::float8 as "oldestSec",
       sum(greatest(0, total - completed - failed))::float8 as "openLines"
     from batches, (select extract(epoch from now()) as now_sec) as clock
     where status in ('validating', 'in_progress', 'finalizing', 'cancelling')
     group by status`,
    [overdueAfterSec],
  );
}
