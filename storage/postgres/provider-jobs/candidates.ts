import type { Pool } from 'pg';
import { query } from '../sql';

/*
 * Jobs at a provider that may be the job of a row. Only their results can tell
 * (docs/design/provider-jobs.md#proof-by-results).
 */

/**
 * Notes what a complete look-up has found, without the jobs that rows own; returns the rest. Null, and without
 * effect, if the attempt does not hold the lease any more. @throws postgres_unavailable
 */
export async function noteCandidates(
  pool: Pool,
  { jobId, token }: { jobId: string; token: string },
  externalIds: readonly string[],
): Promise<string[] | null> {
  const [row] = await query<{ candidates: string[] | null }>(
    pool,
    `update provider_jobs j set candidates = nullif(${WITHOUT_OWNER}, '{}'), updated_at = now()
     where j.id = $1 and j.create_token = $3 and j.creating_until > now() and j.external_id is null
     returning j.candidates`,
    [jobId, externalIds, token],
  );
  return row === undefined ? null : (row.candidates ?? []);
}

/** Of some jobs at the account of a row, those that no row owns. @throws postgres_unavailable */
export async function withoutOwner(
  pool: Pool,
  jobId: string,
  externalIds: readonly string[],
): Promise<string[]> {
  const text = `select ${WITHOUT_OWNER} as ids from provider_jobs j where j.id = $1`;
  const [row] = await query<{ ids: string[] }>(pool, text, [jobId, externalIds]);
  return row?.ids ?? [];
}

/**
 * Notes that a candidate is not the job, which is a fact whenever it is noted. After the last one the job is known
 * not to exist. @throws postgres_unavailable
 */
export async function refuteCandidate(
  pool: Pool,
  jobId: string,
  externalId: string,
): Promise<void> {
  await query(
    pool,
    `update provider_jobs set candidates = array_remove(candidates, $2), updated_at = now()
     where id = $1 and $2 = any(candidates) and external_id is null`,
    [jobId, externalId],
  );
}

/**
 * Whether no other job of the account can be a job with as many lines that no row owns: every other one has its
 * id, or was never created. A restored PostgreSQL may lack rows, so then it is never certain.
 * @throws postgres_unavailable
 */
export async function isOnlyOneMissing(pool: Pool, jobId: string): Promise<boolean> {
  const rows = await query(
    pool,
    `select 1 from provider_jobs j join batches b on b.id = j.batch_id
     where j.id = $1
       and not exists (select 1 from installation where creates_held_until > to_timestamp(b.created_at))
       and not exists (
         select 1 from provider_jobs o
         where o.account = j.account and o.lines = j.lines and o.id <> j.id and o.external_id is null
           and o.first_create_at is not null and o.candidates is distinct from '{}' and o.step <> 'released')`,
    [jobId],
  );
  return rows.length > 0;
}

const WITHOUT_OWNER = `array(
  select c from unnest($2::text[]) c
  where not exists (select 1 from provider_jobs o where o.account = j.account and o.external_id = c))`;
