import { MockActivityEnvironment } from '@temporalio/testing';
import { useDatabase } from '../../support/postgres';
import { type JobWorld, jobWorld } from './job-world';

/** What becomes of a job while it is watched (docs/design/delegation.md#watching). */

const database = useDatabase('provider_jobs', 'batches');
let world: JobWorld;

beforeEach(async () => {
  world = await jobWorld(database.pool);
  await world.submit();
  world.provider.calls.length = 0;
});
afterEach(() => world.close());

const job = () => world.provider.jobs.get('remote-1')!;
const late = (ms = 1_000) => ({ giveUpAtMs: Date.now() - ms });
const withDetails = (heartbeatDetails: object) => new MockActivityEnvironment({ heartbeatDetails });

it('looks again later while the job runs', async () => {
  const failure = await world.watch().catch((error: unknown) => error);
  expect(failure).toMatchObject({ type: 'provider_wait' });
  const { nextRetryDelay } = failure as { nextRetryDelay: number };
  expect(nextRetryDelay).toBeGreaterThanOrEqual(27_000);
  expect(nextRetryDelay).toBeLessThanOrEqual(33_000);
  expect(await world.row()).toMatchObject({ step: 'submitted', providerStatus: 'running' });
});

it.each(['completed', 'failed', 'expired', 'cancelled'] as const)(
  'notes that the job is %s',
  async (state) => {
    job().state = state;
    expect(await world.watch()).toEqual({ kind: 'ended' });
    expect(await world.row()).toMatchObject({ step: 'ended', outcome: state });
    expect(await world.watch()).toEqual({ kind: 'ended' });
  },
);

it('cancels a job that is late, and awaits its end for the grace of a harvest', async () => {
  await expect(world.watch(late())).rejects.toMatchObject({ type: 'provider_wait' });
  expect(world.provider.cancelled).toEqual(['remote-1']);
  expect(await world.watch(late(60_001))).toEqual({ kind: 'abandoned' });
  expect(await world.row()).toMatchObject({ step: 'abandoned' });
  expect(world.abandoned).toEqual([(await world.row()).lines]);
});

it('cancels the job of a batch that stops', async () => {
  const env = new MockActivityEnvironment({ scheduledTimestampMs: Date.now() });
  await expect(world.watch({ stopping: true }, env)).rejects.toMatchObject({
    type: 'provider_wait',
  });
  expect(world.provider.cancelled).toEqual(['remote-1']);
});

it('looks in time for the give-up, however long the provider asks it to wait', async () => {
  world.provider.scripted.status = ['transient', 'auth'];
  world.provider.retryAfterMs = 3_600_000;
  const soon = { giveUpAtMs: Date.now() + 10_000 };
  for (let looks = 0; looks < 2; looks++) {
    const failure = await world.watch(soon).catch((error: unknown) => error);
    expect((failure as { nextRetryDelay: number }).nextRetryDelay).toBeLessThanOrEqual(10_000);
  }
});

it('does not take a job for gone before the provider has not known it for 15 minutes', async () => {
  world.provider.jobs.clear();
  await expect(world.watch()).rejects.toMatchObject({ nextRetryDelay: 30_000 });
  const goneSinceMs = Date.now() - 900_000;
  expect(await world.watch({}, withDetails({ goneSinceMs }))).toEqual({ kind: 'ended' });
  expect(await world.row()).toMatchObject({ outcome: 'failed', error: { reason: 'gone' } });
});

it('waits for results that the provider promises, but not for ever', async () => {
  Object.assign(job(), { state: 'completed', hasAllResults: false });
  await expect(world.watch()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  const endedSinceMs = Date.now() - 60_000;
  expect(await world.watch({}, withDetails({ endedSinceMs }))).toEqual({ kind: 'ended' });
});

it('ends a job that failed for want of quota as one to be repeated', async () => {
  Object.assign(job(), { state: 'failed', isQuotaRefusal: true });
  expect(await world.watch()).toEqual({ kind: 'ended' });
  expect(await world.row()).toMatchObject({ step: 'refused', error: { reason: 'quota' } });
});

it('finds a job again whose row was lost with the database', async () => {
  await database.pool.query('delete from provider_jobs');
  await expect(world.watch()).rejects.toMatchObject({ nextRetryDelay: 1 });
  expect(await world.row()).toMatchObject({ step: 'submitted', externalId: 'remote-1' });
  job().state = 'completed';
  expect(await world.watch()).toEqual({ kind: 'ended' });
});

it('gives up a job without an id only if the provider does not have it', async () => {
  await database.pool.query(
    `update provider_jobs set step = 'creating', external_id = null,
       creating_until = now() + interval '1 minute'`,
  );
  world.provider.jobs.clear();
  await expect(world.watch()).rejects.toMatchObject({ type: 'provider_wait' });
  await database.pool.query(`update provider_jobs set creating_until = now() - interval '1 s'`);
  expect(await world.watch()).toEqual({ kind: 'abandoned' });
});

it('asks nothing of another account than that of the job', async () => {
  await database.pool.query(`update provider_jobs set account = 'other'`);
  await expect(world.watch()).rejects.toMatchObject({ nextRetryDelay: 300_000 });
  expect(world.provider.calls).toEqual([]);
});
