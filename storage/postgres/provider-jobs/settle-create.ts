import { DatabaseError, type Pool } from 'pg';
import { stepsBefore } from '../../../core/delegation/job-steps';
import { query, storable } from '../sql';
import type { JobError } from './job-row';

/** Why an attempt gives its lease back: what it means for the next attempt at the job. */
export interface GivenBack {
  /** The provider had no capacity. */
  readonly noCapacity: boolean;
  /** The attempt is certain that the job does not exist. */
  readonly isAbsent?: boolean;
  readonly asksAgainMs: number;
}

/** What became of the id of a created job. */
export type RecordedJob =
  /** `externalId` is what the row holds: another one if an earlier attempt has recorded another job. */
  | { readonly kind: 'recorded'; readonly externalId: string }
  /** Another row of the account has this id. */
  | { readonly kind: 'owned_by_other' }
  | { readonly kind: 'no_row' };

/**
 * Ends the lease of an attempt that has certainly created nothing. Without effect if a later attempt holds
 * the lease, or the job is known. That the job is absent counts only while the lease holds: after a restore an
 * earlier attempt may find its token in the row again. @throws postgres_unavailable
 */
export async function giveLeaseBack(
  pool: Pool,
  { jobId, token }: { jobId: string; token: string },
  { noCapacity, isAbsent = false, asksAgainMs }: GivenBack,
): Promise<void> {
  await query(
    pool,
    `update provider_jobs set creating_until = null, create_token = null,
       capacity_refusals = case when $3 then capacity_refusals + 1 else 0 end,
       candidates = case when $5 and creating_until > now() then '{}' else candidates end,
       asks_again_at = now() + make_interval(secs => $4), updated_at = now()
     where id = $1 and create_token = $2 and external_id is null`,
    [jobId, token, noCapacity, asksAgainMs / 1000, isAbsent],
  );
}

/**
 * Notes that the provider refuses the job for good. Only the holder of the lease may, while it lasts: the answer
 * of an older attempt says nothing about the request of a later one, and after a restore such an attempt may find its
 * token in the row again. False if the row was not changed.
 * @throws postgres_unavailable
 */
export async function refuseCreate(
  pool: Pool,
  { jobId, token }: { jobId: string; token: string },
  error: JobError,
): Promise<boolean> {
  const rows = await query(
    pool,
    `update provider_jobs set step = 'refused', creating_until = null, create_token = null, error = $3,
       ended_at = now(), updated_at = now()
     where id = $1 and create_token = $2 and external_id is null and step = 'creating' and creating_until > now()
     returning id`,
    [jobId, token, errorJson(error)],
  );
  return rows.length > 0;
}

const UNIQUE_VIOLATION = '23505';

/**
 * Writes the provider's id of a job, once. Every attempt may, however late: the id is a fact. A job that was
 * given up keeps its step; the janitor cancels what it finds in the row. @throws postgres_unavailable
 */
export async function recordCreated(
  pool: Pool,
  jobId: string,
  { externalId, adopted }: { readonly externalId: string; readonly adopted: boolean },
): Promise<RecordedJob> {
  try {
    await query(
      pool,
      `update provider_jobs set external_id = $2, adopted = $3, creating_until = null, create_token = null,
         step = case when step = any($4) then 'submitted' else step end,
         candidates = null, capacity_refusals = 0, submitted_at = now(), updated_at = now()
       where id = $1 and external_id is null`,
      [jobId, externalId, adopted, stepsBefore('submitted')],
    );
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== UNIQUE_VIOLATION) throw error;
    return { kind: 'owned_by_other' };
  }
  const [row] = await query<{ id: string }>(
    pool,
    'select external_id as id from provider_jobs where id = $1 and external_id is not null',
    [jobId],
  );
  return row === undefined ? { kind: 'no_row' } : { kind: 'recorded', externalId: row.id };
}

/** An error as the column `error` holds it. */
export function errorJson({ code, message, reason }: JobError): string {
  return JSON.stringify({
    code: code === null ? null : storable(code),
    message: storable(message),
    reason,
  });
}
