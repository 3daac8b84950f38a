import type { Pool, QueryResultRow } from 'pg';
import { OPEN_STATUSES } from '../../../core/batch/status';
import { query } from '../sql';
import type { HeldBatch } from './types';

/** A chunk that was not touched for this long has no worker (docs/design/execution.md#progress-and-fencing). */
const UNTOUCHED_SEC = 5;
/** A live worker touches its chunks every second. */
const JUST_TOUCHED_SEC = 2;

/**
 * Open batches whose workflow has started, each with the other workers than `worker` that may be at work on
 * it. @throws postgres_unavailable
 */
export function startedBatches(pool: Pool, worker: string): Promise<HeldBatch[]> {
  return query<HeldBatch & QueryResultRow>(
    pool,
    `select b.id, b.status, array(
       select distinct p.worker from chunk_progress p
       where p.batch_id = b.id and not p.released and p.worker <> $2
         and p.touched_at > now() - make_interval(secs => $3)) as holders
     from batches b
     where b.status = any($1) and b.workflow_started_at is not null`,
    [[...OPEN_STATUSES], worker, UNTOUCHED_SEC],
  );
}

/**
 * Ids of the given batches that one of their holders has touched within the last two seconds, so that
 * worker is alive. @throws postgres_unavailable
 */
export async function stillHeld(pool: Pool, batches: readonly HeldBatch[]): Promise<Set<string>> {
  const pairs = batches.flatMap(({ id, holders }) =>
    holders.map((holder) => [id, holder] as const),
  );
  const rows = await query<{ id: string }>(
    pool,
    `select distinct p.batch_id as id from chunk_progress p
     join unnest($1::text[], $2::text[]) as h (id, holder)
       on h.id = p.batch_id and h.holder = p.worker
     where p.touched_at > now() - make_interval(secs => $3)`,
    [pairs.map(([id]) => id), pairs.map(([, holder]) => holder), JUST_TOUCHED_SEC],
  );
  return new Set(rows.map(({ id }) => id));
}
