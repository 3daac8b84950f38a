import type { Pool } from 'pg';
import { OPEN_STATUSES } from '../../core/batch/status';
import { RESTARTS_TOGETHER_SEC } from '../../core/batch/last-resort';
import { query } from './sql';

/** What reconcile remembers of its tries with open batches. All: @throws postgres_unavailable */
export interface ReconcileTries {
  /** A closed workflow is about to be started again; tries that lie apart count anew. */
  noteRestart(batchId: string): Promise<void>;
  /** Adds the time since the last look to each, and answers the sums, ms by id. */
  noteOverdue(batchIds: readonly string[]): Promise<Map<string, number>>;
  /** Ending it was of no use now: the time counts anew. */
  forgetOverdue(batchId: string): Promise<void>;
}

/** Looks are a minute apart. What is longer is a time without a worker, which counts as one look. */
const LONGEST_LOOK_SEC = 120;

/** {@link ReconcileTries} over a pool that the caller ends. */
export function createReconcileTries(pool: Pool): ReconcileTries {
  return {
    noteRestart: async (batchId) => {
      await query(
        pool,
        `update batches set restarted_at = now(), restarts = 1 + case
           when restarted_at > now() - make_interval(secs => $2) then restarts else 0 end
         where id = $1`,
        [batchId, RESTARTS_TOGETHER_SEC],
      );
    },
    noteOverdue: async (batchIds) => {
      const rows = await query<{ id: string; ms: number }>(
        pool,
        `update batches set overdue_seen_at = now(), overdue_ms = overdue_ms + least(
             extract(epoch from now() - coalesce(overdue_seen_at, now())), $3) * 1000
         where id = any($1) and status = any($2)
         returning id, overdue_ms as ms`,
        [batchIds, [...OPEN_STATUSES], LONGEST_LOOK_SEC],
      );
      return new Map(rows.map(({ id, ms }) => [id, ms]));
    },
    forgetOverdue: async (batchId) => {
      await query(pool, `update batches set overdue_ms = 0 where id = $1`, [batchId]);
    },
  };
}
