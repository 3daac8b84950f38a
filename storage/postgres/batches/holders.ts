import type { Pool, QueryResultRow } from 'pg';
import { query } from '../sql';
import type { HeldBatch } from './types';

/** Workers announce themselves every 5 s (`worker_routes`). One that has missed that is dead. */
const ANNOUNCED_SEC = 6.5;

/** SQL: an open batch. Literals, so that the planner can use the index `batches_open`. */
const IS_OPEN = `status in ('validating', 'in_progress', 'finalizing', 'cancelling')`;

/** The worker that looks. */
export interface StartedWorker {
  readonly name: string;
  /** Host part of worker names, after the `@`. */
  readonly host: string;
  /** How long it has been running. Older traces of its name are those of a predecessor. */
  readonly uptimeSec: number;
}

/**
 * Open batches in the hands of other workers of this host, or of a predecessor with the same name: a chunk
 * that is not released, or an ingestion or a finalization that has not ended. One row for each batch and
 * holder. @throws postgres_unavailable
 */
export function heldBatches(
  pool: Pool,
  { name, host, uptimeSec }: StartedWorker,
): Promise<HeldBatch[]> {
  return query<HeldBatch & QueryResultRow>(
    pool,
    `with held as (
       select batch_id as id, worker, max(touched_at) as at from chunk_progress
       where not released group by batch_id, worker
       union all
       select id, step_worker, step_began_at from batches
       where step_worker is not null and ${IS_OPEN})
     select distinct b.id, b.status, held.worker as holder
     from batches b join held on held.id = b.id
     where ${IS_OPEN} and split_part(held.worker, '@', 2) = $2
       and (held.worker <> $1 or held.at < clock_timestamp() - make_interval(secs => $3))
     order by 1, 3`,
    [name, host, uptimeSec],
  );
}

/**
 * Those of the given workers, other than `name`, that have announced themselves lately.
 * @throws postgres_unavailable
 */
export async function liveWorkers(
  pool: Pool,
  workers: readonly string[],
  name: string,
): Promise<Set<string>> {
  const rows = await query<{ worker: string }>(
    pool,
    `select worker from worker_routes
     where worker = any($1) and worker <> $2 and seen_at > now() - make_interval(secs => $3)`,
    [workers, name, ANNOUNCED_SEC],
  );
  return new Set(rows.map(({ worker }) => worker));
}
