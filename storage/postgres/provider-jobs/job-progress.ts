import type { Pool } from 'pg';
import { type JobOutcome, type JobStep, stepsBefore } from '../../../core/delegation/job-steps';
import type { JobCounts, JobUsage } from '../../../core/delegation/job-counts';
import { showCounts } from '../progress-sql';
import { query } from '../sql';
import { type JobColumns, JOB_COLUMNS, type JobError, type JobRow } from './job-row';
import { type NewJobRow, toJobRow } from './job-row';
import { errorJson } from './settle-create';

/** The staged input of a job, and what each of its create calls sends. */
export interface StagedInput {
  readonly key: string;
  readonly lines: number;
  readonly bytes: number;
  /** Estimated input tokens. */
  readonly tokens: number;
  /** Position after the last line that was staged: a part may end early. */
  readonly to: number;
  /** The completion window as the create call sends it; null if the provider takes none. */
  readonly sentWindow: string | null;
}

/** What a status call showed; fields that are left out stay as they are. */
export interface JobObservation {
  readonly providerStatus: string;
  readonly counts?: JobCounts | undefined;
  readonly usage?: JobUsage | undefined;
  /** In US dollars; null without a configured price. */
  readonly costUsd?: number | null;
}

/** The end of a job at its provider. */
export interface JobEnd extends JobObservation {
  readonly outcome: JobOutcome;
  readonly error: JobError | null;
}

/** Inserts the row of a job unless it exists; returns the row as it is. @throws postgres_unavailable */
export async function openJob(pool: Pool, job: NewJobRow): Promise<JobRow> {
  await query(
    pool,
    `insert into provider_jobs (id, batch_id, tenant, safe_model, from_pos, to_pos, generation, ordinal,
       model, provider_model, provider, account)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (id) do nothing`,
    [
      job.id,
      job.batchId,
      job.tenant,
      job.safeModel,
      job.from,
      job.to,
      job.generation,
      job.ordinal,
      job.model,
      job.providerModel,
      job.provider,
      job.account,
    ],
  );
  const row = await findJob(pool, job.id);
  if (row === null) throw new Error(`the row of ${job.id} was removed while it was inserted`);
  return row;
}

/** One job; null if there is none. @throws postgres_unavailable */
export async function findJob(pool: Pool, id: string): Promise<JobRow | null> {
  const text = `select ${JOB_COLUMNS} from provider_jobs where id = $1`;
  const [row] = await query<JobColumns>(pool, text, [id]);
  return row === undefined ? null : toJobRow(row);
}

/** Notes the staged input of a job. The first of several inputs counts. */
export function recordStaged(pool: Pool, id: string, staged: StagedInput): Promise<JobRow | null> {
  return change(
    pool,
    { id, to: 'staged' },
    `staged_key = $3, lines = $4, bytes = $5, tokens = $6, to_pos = $7, sent_window = $8`,
    [staged.key, staged.lines, staged.bytes, staged.tokens, staged.to, staged.sentWindow],
  );
}

/** Notes the provider's id of the uploaded input. The first of several uploads counts. */
export function recordUpload(pool: Pool, id: string, upload: string): Promise<JobRow | null> {
  return change(pool, { id, to: 'uploaded' }, 'upload = $3', [upload]);
}

/** Notes that the provider refuses the job for good, outside of a create call. */
export function refuseJob(pool: Pool, id: string, error: JobError): Promise<JobRow | null> {
  // A refusal during `creating` needs the lease.
  const from = stepsBefore('refused').filter((step) => step !== 'creating');
  return change(
    pool,
    { id, to: 'refused', from },
    'error = $3, ended_at = coalesce(ended_at, now())',
    [errorJson(error)],
  );
}

/** Notes what a status call showed of a job that has not ended, and adds its completed lines to those of the batch. */
export async function recordObservation(
  pool: Pool,
  id: string,
  seen: JobObservation,
): Promise<void> {
  const batchId = await writeObservation(pool, id, seen);
  if (batchId !== null && (seen.counts?.completed ?? 0) > 0) await showCounts(pool, [batchId]);
}

/** The batch of the job; null if the job is collected already. */
async function writeObservation(
  pool: Pool,
  id: string,
  { providerStatus, counts, usage, costUsd }: JobObservation,
): Promise<string | null> {
  const [row] = await query<{ batch_id: string }>(
    pool,
    `update provider_jobs set provider_status = $2, poll_failures = 0,
       total = coalesce($3, total), completed = coalesce($4, completed), failed = coalesce($5, failed),
       input_tokens = coalesce($6, input_tokens), cached_tokens = coalesce($7, cached_tokens),
       output_tokens = coalesce($8, output_tokens), cost_usd = coalesce($9, cost_usd),
       updated_at = now()
     where id = $1 and step not in ('collected', 'released') returning batch_id`,
    [
      id,
      providerStatus,
      counts?.total,
      counts?.completed,
      counts?.failed,
      usage?.inputTokens,
      usage?.cachedTokens,
      usage?.outputTokens,
      costUsd,
    ],
  );
  return row?.batch_id ?? null;
}

/**
 * Counts a status call that failed; returns how many failed in a row. `updated_at` stays, because it is the time of
 * the last good look at a running job. @throws postgres_unavailable
 */
export async function recordPollFailure(pool: Pool, id: string): Promise<number> {
  const [row] = await query<{ failures: number }>(
    pool,
    `update provider_jobs set poll_failures = poll_failures + 1
     where id = $1 returning poll_failures as failures`,
    [id],
  );
  return row?.failures ?? 0;
}

/** Notes that a job has ended at its provider. A later look may correct counts and usage. */
export async function recordJobEnd(pool: Pool, id: string, end: JobEnd): Promise<JobRow | null> {
  await writeObservation(pool, id, end);
  return change(
    pool,
    { id, to: 'ended' },
    'outcome = $3, error = $4, ended_at = coalesce(ended_at, now())',
    [end.outcome, end.error === null ? null : errorJson(end.error)],
  );
}

/** What is known of a job when its answers are in the journal. */
export interface CollectedJob {
  /** It is known only now if lines are missing. */
  readonly outcome: JobOutcome;
  /** Replaces what the provider has stated. */
  readonly usage?: JobUsage;
  readonly costUsd: number | null;
}

/** Notes that the answers of a job are in the journal. */
export function recordCollected(
  pool: Pool,
  id: string,
  { outcome, usage, costUsd }: CollectedJob,
): Promise<JobRow | null> {
  const columns = `outcome = $3, cost_usd = coalesce($4, cost_usd),
    input_tokens = coalesce($5, input_tokens), cached_tokens = coalesce($6, cached_tokens),
    output_tokens = coalesce($7, output_tokens)`;
  const tokens = [usage?.inputTokens, usage?.cachedTokens, usage?.outputTokens];
  return change(pool, { id, to: 'collected' }, columns, [outcome, costUsd, ...tokens]);
}

/** Gives a job up: nothing of it is collected any more, and no attempt may create it. */
export function abandonJob(pool: Pool, id: string): Promise<JobRow | null> {
  return change(pool, { id, to: 'abandoned' }, 'asks_again_at = null', []);
}

/**
 * Notes that nothing of a job is left at its provider. Only a collected job keeps its outcome, so that readers can
 * tell afterwards whether its answers were delivered.
 */
export function releaseJob(pool: Pool, id: string): Promise<JobRow | null> {
  const columns = `outcome = case when step = 'collected' then outcome end, asks_again_at = null`;
  return change(pool, { id, to: 'released' }, columns, []);
}

/**
 * Sets columns and step if the transition is legal; returns the row as it is afterwards, null if there is
 * none. A late or repeated statement changes nothing. @throws postgres_unavailable
 */
async function change(
  pool: Pool,
  { id, to, from = stepsBefore(to) }: { id: string; to: JobStep; from?: readonly JobStep[] },
  columns: string,
  values: readonly unknown[],
): Promise<JobRow | null> {
  const [row] = await query<JobColumns>(
    pool,
    `update provider_jobs set step = '${to}', updated_at = now(), ${columns}
     where id = $1 and step = any($2) returning ${JOB_COLUMNS}`,
    [id, from, ...values],
  );
  return row === undefined ? findJob(pool, id) : toJobRow(row);
}
