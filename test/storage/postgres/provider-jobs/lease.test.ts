import { randomUUID } from 'node:crypto';
import { quietMs } from '../../../../core/delegation/create-lease';
import {
  createProviderJobs,
  type ProviderJobs,
} from '../../../../storage/postgres/provider-jobs/repository';
import { createRestoredRows } from '../../../../storage/postgres/restored-rows';
import { loseNextCommit } from '../../../support/lost-commit';
import { useDatabase } from '../../../support/postgres';
import { until } from '../../../support/until';
import { ACCOUNT, leaseRequest, newJob, passTime, uploadedJob } from './job-scene';

const database = useDatabase('batches', 'provider_jobs', 'installation');
let jobs: ProviderJobs;

beforeAll(() => {
  jobs = createProviderJobs(database.pool);
});

describe('the lease of a job', () => {
  it('is granted to one of many attempts that ask at once', async () => {
    const { id } = await uploadedJob(database.pool);
    const requests = Array.from({ length: 8 }, () => leaseRequest(id));
    const answers = await Promise.all(requests.map((request) => jobs.takeLease(request)));
    expect(answers.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
    const refused = answers.filter(({ kind }) => kind !== 'granted');
    expect(refused).toHaveLength(7);
    for (const answer of refused)
      expect(answer).toMatchObject({ kind: 'wait', reason: 'earlier_attempt' });
    expect(await jobs.find(id)).toMatchObject({ step: 'creating' });
  });

  it('is granted again only when the earlier one has ended and settled', async () => {
    const { id } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    const next = leaseRequest(id);
    const answer = await jobs.takeLease(next);
    if (answer.kind !== 'wait') throw new Error(answer.kind);
    const longest = 90_000 + quietMs(30_000);
    expect(answer.afterMs).toBeLessThanOrEqual(longest);
    expect(answer.afterMs).toBeGreaterThan(longest - 5_000);
    await passTime(database.pool, id, longest / 1_000 - 5);
    expect(await jobs.takeLease(next)).toMatchObject({ kind: 'wait' });
    await passTime(database.pool, id, 5);
    expect(await jobs.takeLease(next)).toMatchObject({ kind: 'granted' });
  });

  it('that was given back is free at once', async () => {
    const { id } = await uploadedJob(database.pool);
    const holder = leaseRequest(id);
    await jobs.takeLease(holder);
    await jobs.giveLeaseBack(holder, { noCapacity: false, asksAgainMs: 5_000 });
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ kind: 'granted' });
  });

  it('stays with its holder if another attempt gives it back or reports a refusal', async () => {
    const { id } = await uploadedJob(database.pool);
    const stale = leaseRequest(id);
    await jobs.takeLease(stale);
    await passTime(database.pool, id, 151);
    const holder = leaseRequest(id);
    expect(await jobs.takeLease(holder)).toMatchObject({ kind: 'granted' });
    await jobs.giveLeaseBack(stale, { noCapacity: false, asksAgainMs: 0 });
    expect(await jobs.refuseCreate(stale, { code: null, message: 'no' })).toBe(false);
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ reason: 'earlier_attempt' });
    expect(await jobs.find(id)).toMatchObject({ step: 'creating', error: null });
    expect(await jobs.refuseCreate(holder, { code: 'c', message: 'no' })).toBe(true);
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({
      ...{ kind: 'settled', step: 'refused' },
    });
  });

  it('lets nobody refuse the job after it has ended, as one who finds his token restored', async () => {
    const { id } = await uploadedJob(database.pool);
    const holder = leaseRequest(id);
    await jobs.takeLease(holder);
    await passTime(database.pool, id, 91);
    expect(await jobs.refuseCreate(holder, { code: null, message: 'no' })).toBe(false);
    expect(await jobs.find(id)).toMatchObject({ step: 'creating', error: null });
  });

  it('counts how often in a row the provider had no capacity', async () => {
    const { id } = await uploadedJob(database.pool);
    const counts: unknown[] = [];
    for (const noCapacity of [true, true, false, true]) {
      const holder = leaseRequest(id);
      counts.push(await jobs.takeLease(holder));
      await jobs.giveLeaseBack(holder, { noCapacity, asksAgainMs: 0 });
    }
    expect(counts).toMatchObject([0, 1, 2, 0].map((capacityRefusals) => ({ capacityRefusals })));
  });

  it('counts as taken if the connection broke during the commit', async () => {
    const { id } = await uploadedJob(database.pool);
    loseNextCommit(database.pool);
    await expect(jobs.takeLease(leaseRequest(id))).rejects.toMatchObject({
      code: 'commit_unknown',
    });
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ reason: 'earlier_attempt' });
  });

  it.each(['cancelled', 'expired', 'failed'])('is refused if the batch is %s', async (cause) => {
    const { id } = await uploadedJob(database.pool, {}, { stop_cause: cause });
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ kind: 'stopped', cause });
    expect(await jobs.find(id)).toMatchObject({ step: 'uploaded', firstCreateAtMs: null });
  });

  it('is refused if the batch has ended', async () => {
    const { id } = await uploadedJob(database.pool, {}, { status: 'completed' });
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ kind: 'stopped' });
  });

  it('waits if the batch has no row, or this process calls another account', async () => {
    const { id } = await uploadedJob(database.pool);
    const elsewhere = leaseRequest(id, { account: 'account-2' });
    expect(await jobs.takeLease(elsewhere)).toMatchObject({ reason: 'other_account' });
    await database.pool.query('delete from batches');
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ reason: 'no_batch' });
  });

  it('waits for ten minutes after a restore', async () => {
    await database.pool.query(`insert into installation (store_id) values ('s')`);
    const { id } = await uploadedJob(database.pool);
    await createRestoredRows(database.pool).holdCreates();
    const answer = await jobs.takeLease(leaseRequest(id));
    expect(answer).toMatchObject({ kind: 'wait', reason: 'restored' });
    const over = `update installation set creates_held_until = now()`;
    await database.pool.query(over);
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject({ kind: 'granted' });
  });

  it('is not granted on a row that another process is changing', async () => {
    const { id } = await uploadedJob(database.pool);
    const other = await database.pool.connect();
    await other.query('begin');
    const change = `update provider_jobs set external_id = 'x', step = 'submitted' where id = $1`;
    await other.query(change, [id]);
    const asked = jobs.takeLease(leaseRequest(id));
    const waiting = `select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    const waits = async () => (await database.pool.query(waiting)).rows.length > 0;
    await until(waits, 5_000, 'the attempt to wait for the row');
    await other.query('commit');
    other.release();
    expect(await asked).toMatchObject({ kind: 'exists', externalId: 'x' });
    expect(await jobs.find(id)).toMatchObject({ step: 'submitted' });
  });

  it('tells an attempt that the job exists, is settled, or has no row', async () => {
    const { id } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    await jobs.recordCreated(id, { externalId: 'batch_1', adopted: false });
    const exists = { kind: 'exists', externalId: 'batch_1', step: 'submitted' };
    expect(await jobs.takeLease(leaseRequest(id))).toMatchObject(exists);
    const given = await uploadedJob(database.pool);
    await jobs.abandon(given.id);
    const settled = { kind: 'settled', step: 'abandoned' };
    expect(await jobs.takeLease(leaseRequest(given.id))).toMatchObject(settled);
    expect(await jobs.takeLease(leaseRequest('job_0'))).toEqual({ kind: 'no_row' });
  });
});

describe('the id of a created job', () => {
  it('is written once, whoever reports it', async () => {
    const { id } = await uploadedJob(database.pool);
    const reports = ['a', 'b', 'c'].map((externalId) =>
      jobs.recordCreated(id, { externalId, adopted: true }),
    );
    const first = await Promise.all(reports);
    const row = await jobs.find(id);
    for (const report of first)
      expect(report).toEqual({ kind: 'recorded', externalId: row?.externalId });
    expect(row).toMatchObject({ step: 'submitted', isAdopted: true, creatingUntilMs: null });
  });

  it('is recorded for a job that was given up, which stays given up', async () => {
    const { id } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    await jobs.abandon(id);
    await jobs.recordCreated(id, { externalId: 'late', adopted: false });
    expect(await jobs.find(id)).toMatchObject({ step: 'abandoned', externalId: 'late' });
  });

  it('is recorded for a row that was restored to an earlier step', async () => {
    const { id } = await jobs.open(newJob('batch_restored'));
    await jobs.recordCreated(id, { externalId: 'early', adopted: true });
    expect(await jobs.find(id)).toMatchObject({ step: 'submitted', externalId: 'early' });
  });

  it('is refused if another job of the account has it', async () => {
    const [first, second] = [await uploadedJob(database.pool), await uploadedJob(database.pool)];
    const other = await uploadedJob(database.pool, { account: 'account-2' });
    const job = { externalId: 'same', adopted: false };
    await jobs.recordCreated(first.id, job);
    expect(await jobs.recordCreated(second.id, job)).toEqual({ kind: 'owned_by_other' });
    expect(await jobs.find(second.id)).toMatchObject({ externalId: null });
    expect(await jobs.recordCreated(other.id, job)).toMatchObject({ kind: 'recorded' });
  });

  it('has no place without a row', async () => {
    const job = { externalId: 'x', adopted: false };
    expect(await jobs.recordCreated('job_0', job)).toEqual({ kind: 'no_row' });
  });
});

describe('the quota of an account', () => {
  const ask = (id: string, limits: object) => jobs.takeLease(leaseRequest(id, { limits }));

  it('is never exceeded, however many attempts ask at once', async () => {
    const rows = await Promise.all(
      Array.from({ length: 6 }, (_, i) => uploadedJob(database.pool, { tenant: `t${i % 2}` })),
    );
    // Attempts that were told to wait ask again until the quota is used up.
    let granted = 0;
    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all(rows.map(({ id }) => ask(id, { maxOpenJobs: 2 })));
      granted += answers.filter(({ kind }) => kind === 'granted').length;
    }
    expect(granted).toBe(2);
  });

  it('bounds the tokens of open jobs, and is free again when a job has ended', async () => {
    const limits = { maxEnqueuedTokens: 1_500 };
    const [first, second] = [await uploadedJob(database.pool), await uploadedJob(database.pool)];
    expect(await ask(first.id, limits)).toMatchObject({ kind: 'granted' });
    await jobs.recordCreated(first.id, { externalId: randomUUID(), adopted: false });
    expect(await ask(second.id, limits)).toMatchObject({ kind: 'wait', reason: 'no_room' });
    await jobs.recordEnd(first.id, { providerStatus: 'x', outcome: 'completed', error: null });
    expect(await ask(second.id, limits)).toMatchObject({ kind: 'granted' });
  });

  it('goes to the tenant with the fewest open tokens, and within it to the oldest job', async () => {
    const limits = { maxOpenJobs: 2 };
    const [busy, late, oldest, younger] = [
      await uploadedJob(database.pool, { tenant: 'busy' }),
      await uploadedJob(database.pool, { tenant: 'busy' }),
      await uploadedJob(database.pool, { tenant: 'idle' }),
      await uploadedJob(database.pool, { tenant: 'idle' }),
    ];
    for (const { id } of [busy, oldest]) await ask(id, limits);
    for (const { id } of [late, younger]) await ask(id, limits);
    // Both tenants have one job open. One of `idle` ends, so `idle` is next.
    await jobs.recordCreated(oldest.id, { externalId: 'x', adopted: false });
    await jobs.recordEnd(oldest.id, { providerStatus: 'x', outcome: 'completed', error: null });
    expect(await ask(late.id, limits)).toMatchObject({ kind: 'wait', reason: 'no_room' });
    expect(await ask(younger.id, limits)).toMatchObject({ kind: 'granted' });
  });

  it('goes to the oldest of several waiting jobs of a tenant', async () => {
    const limits = { maxOpenJobs: 1 };
    const [open, older, younger] = [
      await uploadedJob(database.pool),
      await uploadedJob(database.pool),
      await uploadedJob(database.pool),
    ];
    for (const { id } of [open, older, younger]) await ask(id, limits);
    await jobs.abandon(open.id);
    expect(await ask(younger.id, limits)).toMatchObject({ kind: 'wait', reason: 'no_room' });
    expect(await ask(older.id, limits)).toMatchObject({ kind: 'granted' });
  });

  it('is not kept for a job that does not ask any more', async () => {
    const limits = { maxOpenJobs: 1 };
    const [open, gone, other] = [
      await uploadedJob(database.pool, { tenant: 'a' }),
      await uploadedJob(database.pool, { tenant: 'b' }),
      await uploadedJob(database.pool, { tenant: 'c' }),
    ];
    for (const { id } of [open, gone, other]) await ask(id, limits);
    await jobs.abandon(open.id);
    expect(await ask(other.id, limits)).toMatchObject({ kind: 'wait' });
    await passTime(database.pool, gone.id, 100);
    expect(await ask(other.id, limits)).toMatchObject({ kind: 'granted' });
  });

  it('is one for each account', async () => {
    const limits = { maxOpenJobs: 1 };
    const [here, there] = [
      await uploadedJob(database.pool),
      await uploadedJob(database.pool, { account: 'account-2' }),
    ];
    expect(here.account).toBe(ACCOUNT);
    expect(await ask(here.id, limits)).toMatchObject({ kind: 'granted' });
    const elsewhere = leaseRequest(there.id, { account: 'account-2', limits });
    expect(await jobs.takeLease(elsewhere)).toMatchObject({ kind: 'granted' });
  });
});
