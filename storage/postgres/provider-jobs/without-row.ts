import type { Pool } from 'pg';
import { query } from '../sql';

/** A job at a provider, and which of our jobs it is by its marker. */
export interface JobAtProvider {
  readonly externalId: string;
  readonly jobId: string;
}

/**
 * Of some jobs at an account, those that no row knows: none has the id at the provider, and none of the same job may
 * still take it. @throws postgres_unavailable
 */
export function jobsWithoutRow(
  pool: Pool,
  account: string,
  jobs: readonly JobAtProvider[],
): Promise<JobAtProvider[]> {
  return query<JobAtProvider & Record<string, unknown>>(
    pool,
    `select r.external_id as "externalId", r.job_id as "jobId"
     from unnest($2::text[], $3::text[]) as r (external_id, job_id)
     where not exists (select 1 from provider_jobs j where j.account = $1 and j.external_id = r.external_id)
       and not exists (select 1 from provider_jobs j
                       where j.id = r.job_id and (j.external_id = r.external_id
                         or j.external_id is null and j.step <> 'released'))`,
    [account, jobs.map(({ externalId }) => externalId), jobs.map(({ jobId }) => jobId)],
  );
}
