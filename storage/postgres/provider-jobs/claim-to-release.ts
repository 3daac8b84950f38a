import type { Pool } from 'pg';
import { TERMINAL_STATUSES } from '../../../core/batch/status';
import { query } from '../sql';
import { type JobColumns, JOB_COLUMNS, type JobRow, toJobRow } from './job-row';

/** Which jobs a process looks at. */
export interface ReleaseClaim {
  /** Fingerprints of the accounts that this process can call. */
  readonly accounts: readonly string[];
  /** A job that was touched more recently is left alone, ms. */
  readonly idleMs: number;
  readonly limit: number;
}

/** Longer than any completion window. */
const LONGEST_BATCH = '31 days';

/**
 * Jobs of ended batches which may have left something at their provider, those that were untouched longest
 * first. The claim touches them, so no other process gets them before `idleMs` has passed. If the process dies,
 * another one gets them then.
 *
 * A batch without a row may be open: PostgreSQL was restored, and the row is made again soon. Its jobs count as
 * ended only when no batch can be that old. @throws postgres_unavailable
 */
export async function claimToRelease(
  pool: Pool,
  { accounts, idleMs, limit }: ReleaseClaim,
): Promise<JobRow[]> {
  const rows = await query<JobColumns>(
    pool,
    `update provider_jobs set updated_at = now()
     where id in (
       select j.id from provider_jobs j left join batches b on b.id = j.batch_id
       where j.step <> 'released' and j.account = any($1)
         and j.updated_at <= now() - make_interval(secs => $2)
         and (b.status = any($3) or b.id is null and j.created_at < now() - $4::interval)
       order by j.updated_at limit $5 for update of j skip locked)
     returning ${JOB_COLUMNS}`,
    [accounts, idleMs / 1000, [...TERMINAL_STATUSES], LONGEST_BATCH, limit],
  );
  return rows.map(toJobRow);
}
