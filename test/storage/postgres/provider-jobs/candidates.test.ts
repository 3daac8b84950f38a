import {
  createProviderJobs,
  type ProviderJobs,
} from '../../../../storage/postgres/provider-jobs/repository';
import type { LeaseRequest } from '../../../../storage/postgres/provider-jobs/take-lease';
import { createRestoredRows } from '../../../../storage/postgres/restored-rows';
import { useDatabase } from '../../../support/postgres';
import { leaseRequest, newJob, passTime, STAGED, uploadedJob } from './job-scene';

/** The rows of jobs that only results can prove (docs/design/provider-jobs.md#proof-by-results). */

const database = useDatabase('batches', 'provider_jobs', 'installation');
let jobs: ProviderJobs;

beforeAll(() => {
  jobs = createProviderJobs(database.pool);
});

const request = (id: string, over: Partial<LeaseRequest> = {}) =>
  leaseRequest(id, { isProvenByResults: true, ...over });
const ABSENT = { noCapacity: false, isAbsent: true, asksAgainMs: 0 };
/** More than a lease, and twice the time to settle. */
const QUIET_SEC = 151;
/** After {@link QUIET_SEC}, a job whose outcome is unknown has a minute for its own look-up. */
const OWN_TURN_SEC = 61;

async function leased(): Promise<LeaseRequest> {
  const { id } = await uploadedJob(database.pool);
  const holder = request(id);
  expect(await jobs.takeLease(holder)).toMatchObject({ kind: 'granted', lookUp: false });
  return holder;
}

/** The row of a job whose last attempt has found these candidates. */
async function withCandidates(...externalIds: string[]): Promise<string> {
  const { jobId } = await leased();
  await passTime(database.pool, jobId, QUIET_SEC);
  const holder = request(jobId);
  expect(await jobs.takeLease(holder)).toMatchObject({ kind: 'granted', lookUp: true });
  expect(await jobs.noteCandidates(holder, externalIds)).toEqual(externalIds);
  await jobs.giveLeaseBack(holder, { noCapacity: false, asksAgainMs: 0 });
  return jobId;
}

it('asks for a look-up only if an earlier attempt may have created the job', async () => {
  const { jobId } = await leased();
  await passTime(database.pool, jobId, QUIET_SEC);
  const { firstCreateAtMs } = (await jobs.find(jobId)) ?? {};
  const again = await jobs.takeLease(request(jobId));
  expect(again).toMatchObject({ lookUp: true, mayExistSinceMs: firstCreateAtMs });
});

it('remembers that an attempt was certain of the absence of the job', async () => {
  const holder = await leased();
  await jobs.giveLeaseBack(holder, ABSENT);
  expect((await jobs.find(holder.jobId))?.candidates).toEqual([]);
  expect(await jobs.takeLease(request(holder.jobId))).toMatchObject({ lookUp: false });
  expect((await jobs.find(holder.jobId))?.candidates).toBeNull();
});

it('does not believe an attempt whose lease has ended that the job is absent', async () => {
  const holder = await leased();
  await passTime(database.pool, holder.jobId, QUIET_SEC);
  expect(await jobs.noteCandidates(holder, ['x'])).toBeNull();
  await jobs.giveLeaseBack(holder, ABSENT);
  expect((await jobs.find(holder.jobId))?.candidates).toBeNull();
});

it('grants no lease while a candidate is unproven, and needs no look-up afterwards', async () => {
  const id = await withCandidates('a', 'b');
  await jobs.refuteCandidate(id, 'a');
  expect(await jobs.takeLease(request(id))).toMatchObject({ reason: 'candidates' });
  await jobs.refuteCandidate(id, 'b');
  expect(await jobs.takeLease(request(id))).toMatchObject({ kind: 'granted', lookUp: false });
});

it('keeps candidates from the notes of an attempt that lost its lease', async () => {
  const stale = await leased();
  await passTime(database.pool, stale.jobId, QUIET_SEC);
  await jobs.takeLease(request(stale.jobId));
  expect(await jobs.noteCandidates(stale, ['x'])).toBeNull();
});

it('leaves out candidates that rows of the account own', async () => {
  const holder = await leased();
  const { id: owner } = await uploadedJob(database.pool);
  await jobs.recordCreated(owner, { externalId: 'owned', adopted: false });
  expect(await jobs.withoutOwner(holder.jobId, ['owned', 'x'])).toEqual(['x']);
  expect(await jobs.noteCandidates(holder, ['owned'])).toEqual([]);
  // This attempt may create the job now.
  expect((await jobs.find(holder.jobId))?.candidates).toBeNull();
});

it('creates one job of a size at a time, until the outcome of the last one is known', async () => {
  const first = await leased();
  const { id } = await uploadedJob(database.pool);
  expect(await jobs.takeLease(request(id))).toMatchObject({ reason: 'same_size' });
  await passTime(database.pool, first.jobId, QUIET_SEC);
  expect(await jobs.takeLease(request(id))).toMatchObject({ reason: 'same_size' });
  await passTime(database.pool, first.jobId, OWN_TURN_SEC);
  expect(await jobs.takeLease(request(id))).toMatchObject({ kind: 'granted' });
});

it('lets jobs of other sizes, and those of other types of providers, be created meanwhile', async () => {
  await leased();
  const same = await uploadedJob(database.pool);
  expect(await jobs.takeLease(leaseRequest(same.id))).toMatchObject({
    ...{ kind: 'granted', lookUp: true },
  });
  const { id } = await jobs.open(newJob(same.batchId));
  await jobs.recordStaged(id, { ...STAGED, lines: STAGED.lines + 1 });
  expect(await jobs.takeLease(request(id))).toMatchObject({ kind: 'granted' });
});

it('counts a job with candidates as open', async () => {
  await withCandidates('a');
  const { id } = await uploadedJob(database.pool);
  const full = request(id, { limits: { maxOpenJobs: 1 } });
  expect(await jobs.takeLease(full)).toMatchObject({ reason: 'no_room' });
});

it('knows nothing of candidates after a restore, and looks back to the creation of the batch', async () => {
  await database.pool.query(`insert into installation (store_id) values ('s')`);
  const id = await withCandidates('a');
  await database.pool.query(`update batches set created_at = created_at - 1000`);
  await createRestoredRows(database.pool).holdCreates();
  expect((await jobs.find(id))?.candidates).toBeNull();
  await database.pool.query(`update installation set creates_held_until = now()`);
  const { rows } = await database.pool.query<{ at: number }>(
    'select created_at as at from batches',
  );
  expect(await jobs.takeLease(request(id))).toMatchObject({
    ...{ lookUp: true, mayExistSinceMs: (rows[0]?.at ?? 0) * 1000 },
  });
});
