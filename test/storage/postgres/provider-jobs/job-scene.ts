import { createHash, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { jobId } from '../../../../core/delegation/job-ids';
import type { JobRow, NewJobRow } from '../../../../storage/postgres/provider-jobs/job-row';
import {
  createProviderJobs,
  type ProviderJobs,
} from '../../../../storage/postgres/provider-jobs/repository';
import type { LeaseRequest } from '../../../../storage/postgres/provider-jobs/take-lease';
import { type BatchOverrides, insertBatch } from '../../../support/rows';

export const ACCOUNT = 'account-1';

let last = 0;

/** A job that has no row yet, with a range of its own unless `over` says otherwise. */
export function newJob(batchId: string, over: Partial<NewJobRow> = {}): NewJobRow {
  const from = over.from ?? 100 * ++last;
  const identity = { batchId, safeModel: 'm', from, generation: 0, ordinal: 0, ...over };
  const id = jobId(identity, (text) => createHash('sha256').update(text).digest('hex'));
  return {
    ...{ id, tenant: 't', to: from + 100, model: 'gpt', providerModel: 'gpt-2' },
    ...{ provider: 'openai', account: ACCOUNT },
    ...identity,
  };
}

export const STAGED = {
  ...{ key: 'batches/b/delegated/j', lines: 90, bytes: 4_000, tokens: 1_000 },
  ...{ to: 90, sentWindow: '24h' },
};

/** Inserts a batch in progress and a job of it whose input is staged and uploaded. */
export async function uploadedJob(
  pool: Pool,
  over: Partial<NewJobRow> & { readonly tokens?: number } = {},
  batch: BatchOverrides = {},
): Promise<JobRow> {
  const { tokens = STAGED.tokens, ...job } = over;
  const tenant = over.tenant ?? 't';
  const batchId =
    over.batchId ?? (await insertBatch(pool, { status: 'in_progress', tenant, ...batch }));
  const jobs = createProviderJobs(pool);
  const { id } = await jobs.open(newJob(batchId, job));
  await jobs.recordStaged(id, { ...STAGED, tokens });
  const row = await jobs.recordUpload(id, `file-${id}`);
  if (row === null) throw new Error('the job has no row');
  return row;
}

/** A request for the lease of a job by an attempt with a token of its own. */
export function leaseRequest(jobId: string, over: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    ...{ jobId, token: randomUUID(), leaseMs: 90_000, settleMs: 30_000 },
    ...{ account: ACCOUNT, isProvenByResults: false, limits: {} },
    ...over,
  };
}

/** Moves the times of a job's lease into the past, as if `seconds` had gone by. */
export async function passTime(pool: Pool, id: string, seconds: number): Promise<void> {
  await pool.query(
    `update provider_jobs set creating_until = creating_until - make_interval(secs => $2),
       asks_again_at = asks_again_at - make_interval(secs => $2) where id = $1`,
    [id, seconds],
  );
}

/** Calls each method on a job of the batch; returns the id of the job. */
export async function callEveryMethod(jobs: ProviderJobs, batchId: string): Promise<string> {
  const { id } = await jobs.open(newJob(batchId));
  await jobs.recordStaged(id, STAGED);
  await jobs.recordUpload(id, 'file-1');
  const holder = leaseRequest(id, { limits: { maxOpenJobs: 1 } });
  await jobs.takeLease(holder);
  await jobs.giveLeaseBack(holder, { noCapacity: true, asksAgainMs: 0 });
  await jobs.refuseCreate(holder, { code: null, message: 'no' });
  await jobs.noteCandidates(holder, ['x']);
  await jobs.withoutOwner(id, ['x']);
  await jobs.isOnlyOneMissing(id);
  await jobs.refuteCandidate(id, 'x');
  await jobs.recordCreated(id, { externalId: 'x', adopted: false });
  await jobs.recordObservation(id, { providerStatus: 'x' });
  await jobs.recordPollFailure(id);
  await jobs.recordEnd(id, { providerStatus: 'x', outcome: 'failed', error: null });
  await jobs.recordCollected(id, { outcome: 'failed', costUsd: null });
  await jobs.refuse(id, { code: null, message: 'no' });
  await jobs.abandon(id);
  await jobs.release(id);
  await jobs.find(id);
  await jobs.ofModel(batchId, 'm');
  await jobs.ofBatch(batchId, 't');
  await jobs.claimToRelease({ accounts: [], idleMs: 0, limit: 10 });
  await jobs.openByAccount();
  await jobs.withoutRow(ACCOUNT, [{ externalId: 'x', jobId: id }]);
  return id;
}
