import type { Pool, PoolClient } from 'pg';
import { type BatchStatus, isTerminal, type StopCause } from '../../../core/batch/status';
import {
  type JobToLease,
  type LeaseVerdict,
  leaseVerdict,
} from '../../../core/delegation/create-lease';
import { CREATABLE_STEPS, type JobStep } from '../../../core/delegation/job-steps';
import {
  type AccountLimits,
  nextToCreate,
  type TenantDemand,
} from '../../../core/delegation/quota';
import { inTransaction, query } from '../sql';

/** One attempt that asks for the lease of its job. */
export interface LeaseRequest {
  readonly jobId: string;
  /** A random UUID of this attempt. Only its holder may give the lease back or record a refusal. */
  readonly token: string;
  readonly leaseMs: number;
  /** How long a late request may take effect, and a job may be missing from lists. */
  readonly settleMs: number;
  /** Fingerprint of the account that this process calls. */
  readonly account: string;
  /** Whether only its results tell a job of the provider from others. */
  readonly isProvenByResults: boolean;
  readonly limits: AccountLimits;
}

/** The verdict, and what the attempt needs beside it. */
export type LeaseAnswer =
  | { readonly kind: 'no_row' }
  | (LeaseVerdict & {
      /** How often in a row the provider had no capacity for the job. */
      readonly capacityRefusals: number;
      /** Since when the job may exist at the provider, ms since the epoch; null if it cannot. */
      readonly mayExistSinceMs: number | null;
    });

/** The first key of our advisory locks, an arbitrary number; the second key is a hash of the account. */
const LOCK = 720_512;
/** A process that is frozen inside the transaction must not hold up its account. */
const IDLE_LIMIT = '5s';
/** A job that asks again later than this, or should have asked longer ago, holds no other job up. */
const WAITING_MS = 60_000;

const CREATABLE = [...CREATABLE_STEPS];

/**
 * Takes the lease of a job if the rows allow it (docs/design/provider-jobs.md#the-lease). Attempts at the
 * jobs of one account run one after the other. PostgreSQL's clock measures the lease, from the begin of the
 * transaction, so it ends there after it has ended in the process that holds it. @throws postgres_unavailable,
 * commit_unknown
 */
export function takeLease(pool: Pool, request: LeaseRequest): Promise<LeaseAnswer> {
  return inTransaction(pool, async (client) => {
    await query(
      client,
      `select pg_advisory_xact_lock($1, hashtext($2)),
         set_config('idle_in_transaction_session_timeout', $3, true)`,
      [LOCK, request.account, IDLE_LIMIT],
    );
    const job = await lockJob(client, request.jobId);
    if (job === null) return { kind: 'no_row' };
    const verdict = await leaseVerdict(job, request, () => hasRoom(client, request));
    await noteVerdict(client, request, verdict);
    const { capacityRefusals, mayExistSinceMs } = job;
    return { ...verdict, capacityRefusals, mayExistSinceMs };
  });
}

interface LockedJob extends JobToLease {
  readonly capacityRefusals: number;
  readonly mayExistSinceMs: number | null;
}

async function lockJob(client: PoolClient, jobId: string): Promise<LockedJob | null> {
  const [row] = await query<{
    step: JobStep;
    externalId: string | null;
    account: string;
    leaseLeftMs: number | null;
    heldMs: number | null;
    status: BatchStatus | null;
    cause: StopCause | null;
    capacityRefusals: number;
    candidates: number | null;
    mayExistSinceMs: number | null;
    sameSizeLeaseLeftMs: number | null;
  }>(
    client,
    `select j.step, j.external_id as "externalId", j.account,
       (extract(epoch from j.creating_until - now()) * 1000)::float8 as "leaseLeftMs",
       (select extract(epoch from max(creates_held_until) - now()) * 1000 from installation)::float8 as "heldMs",
       b.status, b.stop_cause as cause, j.capacity_refusals as "capacityRefusals",
       cardinality(j.candidates) as candidates,
       floor(case when exists (select 1 from installation
                               where creates_held_until > to_timestamp(b.created_at))
             then b.created_at else extract(epoch from j.first_create_at) end * 1000)::bigint as "mayExistSinceMs",
       (select extract(epoch from max(o.creating_until) - now()) * 1000
        from provider_jobs o
        where o.account = j.account and o.lines = j.lines and o.id <> j.id and o.external_id is null
          and o.step = 'creating')::float8 as "sameSizeLeaseLeftMs"
     from provider_jobs j left join batches b on b.id = j.batch_id
     where j.id = $1 for update of j`,
    [jobId],
  );
  if (row === undefined) return null;
  const { status, cause, heldMs, candidates, sameSizeLeaseLeftMs, ...job } = row;
  const mayBeSent = row.mayExistSinceMs !== null;
  return {
    ...job,
    heldMs: heldMs ?? 0,
    batch: batchState(status, cause),
    traces: { candidates, mayBeSent, sameSizeLeaseLeftMs },
  };
}

function batchState(status: BatchStatus | null, cause: StopCause | null): JobToLease['batch'] {
  if (status === null) return 'missing';
  if (cause !== null) return cause;
  return isTerminal(status) ? 'ended' : 'open';
}

/** Waiting jobs of a tenant that are looked at. Those behind them ask again. */
const MAX_TURNS = 100;

async function hasRoom(client: PoolClient, request: LeaseRequest): Promise<boolean> {
  const { maxOpenJobs, maxEnqueuedTokens } = request.limits;
  if (maxOpenJobs === undefined && maxEnqueuedTokens === undefined) return true;
  const tenants = await demandOf(client, request);
  return nextToCreate(tenants, request.limits).includes(request.jobId);
}

/** What each tenant has open at the account, and its oldest waiting jobs; the asking job waits too. */
async function demandOf(client: PoolClient, request: LeaseRequest): Promise<TenantDemand[]> {
  const rows = await query<{
    tenant: string;
    openJobs: number;
    openTokens: number;
    waitingIds: string[];
    waitingTokens: string[];
  }>(
    client,
    `select tenant, count(*) filter (where is_open) as "openJobs",
       coalesce(sum(tokens) filter (where is_open), 0)::bigint as "openTokens",
       coalesce((array_agg(id order by created_at, seq) filter (where waits))[1:$5], '{}') as "waitingIds",
       coalesce((array_agg(tokens order by created_at, seq) filter (where waits))[1:$5], '{}') as "waitingTokens"
     from (
       select id, seq, tenant, tokens, created_at,
         step = 'submitted'
           or (creating_until is not null or cardinality(candidates) > 0) and id <> $2 as is_open,
         id = $2 or step = any($3) and creating_until is null and external_id is null
           and coalesce(cardinality(candidates), 0) = 0
           and asks_again_at between now() - $4::interval and now() + $4::interval as waits
       from provider_jobs
       where account = $1 and step in ('staged','uploaded','creating','submitted')) jobs
     where is_open or waits
     group by tenant`,
    [request.account, request.jobId, CREATABLE, `${WAITING_MS} milliseconds`, MAX_TURNS],
  );
  return rows.map(({ tenant, openJobs, openTokens, waitingIds, waitingTokens }) => ({
    tenant,
    openJobs,
    openTokens,
    waiting: waitingIds.map((id, i) => ({ id, tokens: Number(waitingTokens[i] ?? 0) })),
  }));
}

async function noteVerdict(
  client: PoolClient,
  { jobId, token, leaseMs }: LeaseRequest,
  verdict: LeaseVerdict,
): Promise<void> {
  if (verdict.kind === 'granted') {
    await query(
      client,
      `update provider_jobs set step = 'creating', create_token = $2,
         creating_until = now() + make_interval(secs => $3),
         first_create_at = case when candidates = '{}' then now() else coalesce(first_create_at, now()) end,
         candidates = null, asks_again_at = null, updated_at = now()
       where id = $1`,
      [jobId, token, leaseMs / 1000],
    );
  } else if (verdict.kind === 'wait' && verdict.reason === 'no_room') {
    await query(
      client,
      `update provider_jobs set asks_again_at = now() + make_interval(secs => $2), updated_at = now()
       where id = $1`,
      [jobId, verdict.afterMs / 1000],
    );
  }
}
