import type { Pool } from 'pg';
import { query } from '../sql';
import { isOnlyOneMissing, noteCandidates, refuteCandidate, withoutOwner } from './candidates';
import { claimToRelease, type ReleaseClaim } from './claim-to-release';
import { type OpenJobs, openJobs } from './open-jobs';
import { type JobAtProvider, jobsWithoutRow } from './without-row';
import {
  abandonJob,
  findJob,
  type JobEnd,
  type JobObservation,
  openJob,
  recordCollected,
  type CollectedJob,
  recordJobEnd,
  recordObservation,
  recordPollFailure,
  recordStaged,
  recordUpload,
  refuseJob,
  releaseJob,
  type StagedInput,
} from './job-progress';
import {
  JOB_COLUMNS,
  type JobColumns,
  type JobError,
  type JobRow,
  type NewJobRow,
} from './job-row';
import { toJobRow } from './job-row';
import {
  type GivenBack,
  giveLeaseBack,
  recordCreated,
  type RecordedJob,
  refuseCreate,
} from './settle-create';
import { type LeaseAnswer, type LeaseRequest, takeLease } from './take-lease';

/**
 * The rows of `provider_jobs`. Every method that sets a step checks the transition and returns the row as it
 * is afterwards, or null if there is none; a late or repeated call changes nothing. All methods:
 * @throws postgres_unavailable (docs/design/provider-jobs.md#rows)
 */
export interface ProviderJobs {
  /** Inserts the row of a job unless it exists. */
  open(job: NewJobRow): Promise<JobRow>;
  find(id: string): Promise<JobRow | null>;
  /** All jobs of one model of a batch, in the order of positions, generations and ordinals. */
  ofModel(batchId: string, safeModel: string): Promise<JobRow[]>;
  /** All jobs of a tenant's batch, in the order of insertion. */
  ofBatch(batchId: string, tenant: string): Promise<JobRow[]>;
  /** Takes jobs of ended batches which may have left something at their provider, for a while. */
  claimToRelease(claim: ReleaseClaim): Promise<JobRow[]>;
  /** Jobs that providers run, by account. */
  openByAccount(): Promise<OpenJobs[]>;
  /** Of some jobs at an account, those that no row knows. */
  withoutRow(account: string, jobs: readonly JobAtProvider[]): Promise<JobAtProvider[]>;

  recordStaged(id: string, staged: StagedInput): Promise<JobRow | null>;
  recordUpload(id: string, upload: string): Promise<JobRow | null>;

  /** Asks for the right to create a job. @throws commit_unknown: then the lease may be taken */
  takeLease(request: LeaseRequest): Promise<LeaseAnswer>;
  giveLeaseBack(holder: LeaseHolder, why: GivenBack): Promise<void>;
  refuseCreate(holder: LeaseHolder, error: JobError): Promise<boolean>;
  recordCreated(
    id: string,
    job: { readonly externalId: string; readonly adopted: boolean },
  ): Promise<RecordedJob>;

  /** Null if the attempt does not hold the lease any more. */
  noteCandidates(holder: LeaseHolder, externalIds: readonly string[]): Promise<string[] | null>;
  withoutOwner(id: string, externalIds: readonly string[]): Promise<string[]>;
  refuteCandidate(id: string, externalId: string): Promise<void>;
  isOnlyOneMissing(id: string): Promise<boolean>;

  recordObservation(id: string, seen: JobObservation): Promise<void>;
  /** Returns how many status calls failed in a row. */
  recordPollFailure(id: string): Promise<number>;
  recordEnd(id: string, end: JobEnd): Promise<JobRow | null>;
  recordCollected(id: string, found: CollectedJob): Promise<JobRow | null>;
  refuse(id: string, error: JobError): Promise<JobRow | null>;
  abandon(id: string): Promise<JobRow | null>;
  release(id: string): Promise<JobRow | null>;
}

/** The attempt that took a lease. */
export interface LeaseHolder {
  readonly jobId: string;
  readonly token: string;
}

/** {@link ProviderJobs} over a pool that the caller ends. */
export function createProviderJobs(pool: Pool): ProviderJobs {
  return {
    open: (job) => openJob(pool, job),
    find: (id) => findJob(pool, id),
    ofModel: (batchId, safeModel) =>
      select(
        pool,
        `where batch_id = $1 and safe_model = $2 order by from_pos, generation, ordinal`,
        [batchId, safeModel],
      ),
    ofBatch: (batchId, tenant) =>
      select(pool, `where batch_id = $1 and tenant = $2 order by seq`, [batchId, tenant]),
    claimToRelease: (claim) => claimToRelease(pool, claim),
    openByAccount: () => openJobs(pool),
    withoutRow: (account, found) => jobsWithoutRow(pool, account, found),
    recordStaged: (id, staged) => recordStaged(pool, id, staged),
    recordUpload: (id, upload) => recordUpload(pool, id, upload),
    takeLease: (request) => takeLease(pool, request),
    giveLeaseBack: (holder, why) => giveLeaseBack(pool, holder, why),
    refuseCreate: (holder, error) => refuseCreate(pool, holder, error),
    recordCreated: (id, job) => recordCreated(pool, id, job),
    noteCandidates: (holder, externalIds) => noteCandidates(pool, holder, externalIds),
    withoutOwner: (id, externalIds) => withoutOwner(pool, id, externalIds),
    refuteCandidate: (id, externalId) => refuteCandidate(pool, id, externalId),
    isOnlyOneMissing: (id) => isOnlyOneMissing(pool, id),
    recordObservation: (id, seen) => recordObservation(pool, id, seen),
    recordPollFailure: (id) => recordPollFailure(pool, id),
    recordEnd: (id, end) => recordJobEnd(pool, id, end),
    recordCollected: (id, found) => recordCollected(pool, id, found),
    refuse: (id, error) => refuseJob(pool, id, error),
    abandon: (id) => abandonJob(pool, id),
    release: (id) => releaseJob(pool, id),
  };
}

async function select(pool: Pool, rest: string, values: readonly unknown[]): Promise<JobRow[]> {
  const text = `select ${JOB_COLUMNS} from provider_jobs ${rest}`;
  return (await query<JobColumns>(pool, text, values)).map(toJobRow);
}
