import type { Pool } from 'pg';
import { query } from '../sql';

/** The jobs that an account has accepted and that have not ended. */
export interface OpenJobs {
  readonly account: string;
  readonly open: number;
  /** Estimated input tokens of these jobs. */
  readonly tokens: number;
  /** Time since the last good look at the job that waits longest for one, seconds. */
  readonly pollAgeSec: number;
}

/** Open jobs by account; accounts without any are missing. Reads an index of open jobs. @throws postgres_unavailable */
export function openJobs(pool: Pool): Promise<OpenJobs[]> {
  return query<OpenJobs & Record<string, unknown>>(
    pool,
    `select account, count(*)::int as open, sum(tokens)::float8 as tokens,
       greatest(0, extract(epoch from now() - min(updated_at)))::float8 as "pollAgeSec"
     from provider_jobs where step = 'submitted' group by account`,
  );
}
