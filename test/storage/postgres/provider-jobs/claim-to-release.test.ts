import {
  createProviderJobs,
  type ProviderJobs,
} from '../../../../storage/postgres/provider-jobs/repository';
import { useDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';
import { ACCOUNT, uploadedJob } from './job-scene';

const database = useDatabase('batches', 'provider_jobs');
let jobs: ProviderJobs;
beforeAll(() => {
  jobs = createProviderJobs(database.pool);
});

const ENDED = { status: 'cancelled' };
const IDLE_MS = 60_000;
const claimed = async (over: Partial<Parameters<ProviderJobs['claimToRelease']>[0]> = {}) => {
  const claim = { accounts: [ACCOUNT], idleMs: IDLE_MS, limit: 10, ...over };
  return (await jobs.claimToRelease(claim)).map(({ id }) => id).sort();
};
/** Sets the times of a row back. */
const age = (id: string, seconds: number, column = 'updated_at') =>
  database.pool.query(
    `update provider_jobs set ${column} = now() - make_interval(secs => $2) where id = $1`,
    [id, seconds],
  );
const idleJob = async (batch: object) => {
  const { id } = await uploadedJob(database.pool, {}, { ...batch });
  await age(id, 61);
  return id;
};

describe('jobs to release', () => {
  it('are those of ended batches that were untouched for a while, in any step but the last', async () => {
    const id = await idleJob(ENDED);
    await idleJob({ status: 'in_progress' });
    await idleJob({ status: 'cancelling' });
    await uploadedJob(database.pool, {}, ENDED);
    expect(await claimed()).toEqual([id]);
    await jobs.abandon(id);
    await age(id, 61);
    expect(await claimed()).toEqual([id]);
    await jobs.release(id);
    await age(id, 61);
    expect(await claimed()).toEqual([]);
  });

  it('belong to the process that claims them, until they are idle again', async () => {
    const ids = [await idleJob(ENDED), await idleJob(ENDED), await idleJob(ENDED)].sort();
    const claims = await Promise.all([claimed(), claimed(), claimed()]);
    expect(claims.flat().sort()).toEqual(ids);
    expect(await claimed()).toEqual([]);
    await age(ids[0] ?? '', 61);
    expect(await claimed()).toEqual([ids[0]]);
  });

  it('come in pages, the longest untouched first', async () => {
    const [young, old] = [await idleJob(ENDED), await idleJob(ENDED)];
    await age(old, 500);
    expect(await claimed({ limit: 1 })).toEqual([old]);
    expect(await claimed({ limit: 1 })).toEqual([young]);
  });

  it('are left alone by a process that calls another account', async () => {
    await idleJob(ENDED);
    expect(await claimed({ accounts: ['other'] })).toEqual([]);
  });

  it('of a batch without a row wait until no batch can be that old: its row may be restored', async () => {
    const batchId = await insertBatch(database.pool, ENDED);
    const { id } = await uploadedJob(database.pool, { batchId });
    await database.pool.query('delete from batches');
    await age(id, 61);
    await age(id, 30 * 86_400, 'created_at');
    expect(await claimed()).toEqual([]);
    await age(id, 32 * 86_400, 'created_at');
    expect(await claimed()).toEqual([id]);
  });
});

describe('open jobs', () => {
  it('are counted by account, with the age of the oldest good look', async () => {
    const [first, second] = [await uploadedJob(database.pool), await uploadedJob(database.pool)];
    await uploadedJob(database.pool);
    await jobs.recordCreated(first.id, { externalId: 'x', adopted: false });
    await jobs.recordCreated(second.id, { externalId: 'y', adopted: false });
    await age(first.id, 1_000);
    await jobs.recordPollFailure(first.id);
    const [open, ...rest] = await jobs.openByAccount();
    expect(rest).toEqual([]);
    expect(open).toMatchObject({ account: ACCOUNT, open: 2, tokens: first.tokens + second.tokens });
    expect(Math.round((open?.pollAgeSec ?? 0) / 100)).toBe(10);
    await jobs.recordObservation(first.id, { providerStatus: 'in_progress' });
    expect((await jobs.openByAccount())[0]?.pollAgeSec).toBeLessThan(100);
    await jobs.abandon(first.id);
    await jobs.abandon(second.id);
    expect(await jobs.openByAccount()).toEqual([]);
  });
});
