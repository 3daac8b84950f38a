import { MockActivityEnvironment } from '@temporalio/testing';
import type { WatchedJob } from '../../../activities/delegate/contract';
import { wireId } from '../../../core/delegation/job-ids';
import type { LineResult } from '../../../providers/provider';
import { useDatabase } from '../../support/postgres';
import { type JobWorld, jobWorld, type JobWorldOptions } from './job-world';

/** Jobs that only their results tell from others (docs/design/provider-jobs.md#proof-by-results). */

const database = useDatabase('provider_jobs', 'batches', 'installation');
const worlds: JobWorld[] = [];
const FOREIGN_JOB = `job_${'f'.repeat(32)}`;

async function open(options: JobWorldOptions = {}): Promise<JobWorld> {
  const world = await jobWorld(database.pool, { lines: 3, ...options });
  world.provider.recogniseByResults();
  worlds.push(world);
  return world;
}

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

/** A create whose answer is lost, until an attempt has found candidates. */
async function loseAnswer(world: JobWorld, outcome: 'ambiguous' | 'lost'): Promise<void> {
  world.provider.scripted.create = [outcome];
  await expect(world.submit()).rejects.toMatchObject({ type: 'provider_wait' });
  await database.pool.query(
    `update provider_jobs set creating_until = now() - interval '1 second'`,
  );
  await expect(world.submit()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  expect(await world.row()).toMatchObject({ externalId: null, creatingUntilMs: null });
}

/** A job with as many lines that another program has created in the account. */
function addForeign(world: JobWorld, externalId = 'foreign-1'): void {
  world.provider.addJob(externalId, FOREIGN_JOB);
}

function end(world: JobWorld, externalId: string): void {
  const job = world.provider.jobs.get(externalId);
  if (job === undefined) throw new Error(`the provider has no ${externalId}`);
  job.state = 'completed';
}

const WAITS = { type: 'provider_wait', message: expect.stringContaining('only their results') };

it('creates a job at once, whatever other jobs of its size the account has', async () => {
  const world = await open();
  addForeign(world);
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(world.provider.calls).not.toContain('find');
  expect(await world.row()).toMatchObject({ isAdopted: false, candidates: null });
});

it('adopts the candidate whose results are of this job', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'ambiguous');
  expect((await world.row()).candidates).toEqual(['foreign-1', 'remote-2']);
  await expect(world.submit()).rejects.toMatchObject(WAITS);
  end(world, 'remote-2');
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(await world.row()).toMatchObject({ externalId: 'remote-2', isAdopted: true });
  expect(world.provider.calls.filter((call) => call === 'create')).toHaveLength(1);
});

it('creates the job when every candidate has turned out to be another one', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'lost');
  await expect(world.submit()).rejects.toMatchObject(WAITS);
  end(world, 'foreign-1');
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(await world.row()).toMatchObject({ externalId: 'remote-2', isAdopted: false });
  expect(world.provider.readResults).toBe(1);
});

it('counts a candidate that its owner has deleted as another job', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'lost');
  world.provider.jobs.delete('foreign-1');
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
});

it('goes on waiting while a candidate cannot be asked', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'lost');
  end(world, 'foreign-1');
  world.provider.scripted.status = ['transient'];
  await expect(world.submit()).rejects.toMatchObject(WAITS);
  world.provider.scripted.results = ['transient'];
  world.provider.firstResults.set('foreign-1', []);
  await expect(world.submit()).rejects.toMatchObject(WAITS);
  expect((await world.row()).candidates).toEqual(['foreign-1']);
});

it('ignores jobs that other rows own', async () => {
  const world = await open();
  addForeign(world);
  const owner = `insert into provider_jobs (id, batch_id, tenant, safe_model, from_pos, to_pos, generation, ordinal,
      model, provider_model, provider, account, step, external_id)
    values ('other', 'batch_2', 't', 'm', 0, 1, 0, 0, 'm', 'm', 'far', 'account-1', 'submitted', 'foreign-1')`;
  await database.pool.query(owner);
  world.provider.scripted.create = ['lost'];
  await expect(world.submit()).rejects.toMatchObject({ type: 'provider_wait' });
  const past = `update provider_jobs set creating_until = now() - interval '1 second' where id <> 'other'`;
  await database.pool.query(past);
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(await world.row()).toMatchObject({ isAdopted: false });
});

it('adopts a single candidate in an account of its own, before it has ended', async () => {
  const world = await open({ isExclusive: true });
  await loseAnswer(world, 'ambiguous');
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(await world.row()).toMatchObject({ externalId: 'remote-1', isAdopted: true });
});

it.each([
  ['two candidates', (world: JobWorld) => Promise.resolve(addForeign(world))],
  ['another job of the size that may be missing', addMissing],
  ['a restored PostgreSQL', restore],
])('waits for results in an account of its own with %s', async (_, prepare) => {
  const world = await open({ isExclusive: true });
  await prepare(world);
  await loseAnswer(world, 'ambiguous');
  await expect(world.submit()).rejects.toMatchObject(WAITS);
});

async function addMissing(world: JobWorld): Promise<void> {
  const other = `insert into provider_jobs (id, batch_id, tenant, safe_model, from_pos, to_pos, generation, ordinal,
      model, provider_model, provider, account, step, lines, first_create_at)
    values ('other', 'batch_2', 't', 'm', 0, 3, 0, 0, 'm', 'm', 'far', $1, 'abandoned', 3, now())`;
  await database.pool.query(other, [world.provider.account]);
}

async function restore(): Promise<void> {
  const held = `insert into installation (store_id, creates_held_until)
    values ('s', now() - interval '1 second')`;
  await database.pool.query(held);
  await database.pool.query(`update batches set created_at = created_at - 3600`);
}

it('looks a job up from the creation of its batch after a restore of PostgreSQL', async () => {
  const world = await open();
  addForeign(world);
  await restore();
  await expect(world.submit()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  expect((await world.row()).candidates).toEqual(['foreign-1']);
  end(world, 'foreign-1');
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
});

function watchAfterStop(world: JobWorld): Promise<WatchedJob> {
  const env = new MockActivityEnvironment({ scheduledTimestampMs: Date.now() });
  return world.watch({ stopping: true }, env);
}

it('never cancels a candidate when the batch stops, and collects one that is proven in time', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'ambiguous');
  await expect(watchAfterStop(world)).rejects.toMatchObject(WAITS);
  expect(world.provider.cancelled).toEqual([]);
  end(world, 'remote-2');
  world.provider.firstResults.set('remote-2', [world.answer(0)]);
  await expect(watchAfterStop(world)).rejects.toMatchObject({ type: 'provider_wait' });
  expect(await watchAfterStop(world)).toEqual({ kind: 'ended' });
  expect(await world.row()).toMatchObject({ externalId: 'remote-2', step: 'ended' });
});

it('gives a job up whose candidates are all refuted when the batch stops', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'lost');
  end(world, 'foreign-1');
  expect(await watchAfterStop(world)).toEqual({ kind: 'abandoned' });
});

const stray = (): LineResult => ({
  ...{ kind: 'unanswered', wireId: wireId(FOREIGN_JOB, 0), reason: 'cancelled' },
});

it('adopts a candidate although a result of someone else is among its own', async () => {
  const world = await open();
  await loseAnswer(world, 'ambiguous');
  end(world, 'remote-1');
  world.provider.firstResults.set('remote-1', [stray(), world.answer(0)]);
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(await world.row()).toMatchObject({ externalId: 'remote-1', isAdopted: true });
});

it('reads no more than 100 results of a job of someone else', async () => {
  const world = await open();
  addForeign(world);
  await loseAnswer(world, 'lost');
  end(world, 'foreign-1');
  const results = Array.from({ length: 100 }, stray);
  Object.defineProperty(results, 100, {
    get: () => {
      throw new Error('a result too many was read');
    },
  });
  world.provider.firstResults.set('foreign-1', results);
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(await world.row()).toMatchObject({ isAdopted: false });
});

it('reads no more than one result of a candidate that is the job', async () => {
  const world = await open();
  await loseAnswer(world, 'ambiguous');
  end(world, 'remote-1');
  const id = world.input.job.jobId;
  const second = () => {
    throw new Error('a second result was read');
  };
  const results = [world.answer(2)] as LineResult[];
  Object.defineProperty(results, 1, { get: second, enumerable: true });
  results.length = 2;
  world.provider.firstResults.set('remote-1', results);
  expect(wireId(id, 2)).toBe(results[0]?.wireId);
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
});
