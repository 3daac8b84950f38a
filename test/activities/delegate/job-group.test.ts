import { MockActivityEnvironment } from '@temporalio/testing';
import type { DelegatedJob, JobInput } from '../../../activities/delegate/contract';
import { sha256Hex } from '../../../activities/delegate/open-parts';
import { jobId, wireId } from '../../../core/delegation/job-ids';
import { useDatabase } from '../../support/postgres';
import { type JobWorld, jobWorld, type JobWorldOptions } from './job-world';

/** Several jobs that run as one part (docs/design/delegation.md#parts-of-several-jobs). */

const database = useDatabase('provider_jobs', 'batches');
const worlds: JobWorld[] = [];

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

/** A part of three jobs with two lines each. */
async function threeJobs(options: JobWorldOptions = {}) {
  const world = await jobWorld(database.pool, { lines: 6, ...options });
  worlds.push(world);
  const jobs = [0, 2, 4].map((from): DelegatedJob => {
    const identity = { batchId: world.input.batchId, safeModel: 'm', from };
    const id = jobId({ ...identity, generation: 0, ordinal: 0 }, sha256Hex);
    return { jobId: id, from, to: from + 2, generation: 0, ordinal: 0 };
  });
  const [first] = jobs;
  const part: Partial<JobInput> = { job: { ...first!, to: 6, jobs } };
  const rows = () => Promise.all(jobs.map(async (job) => (await world.deps.jobs.find(job.jobId))!));
  const answer = (line: number) =>
    world.answer(line, { wireId: wireId(jobs[Math.floor(line / 2)]!.jobId, line) });
  return { world, part, rows, answer, jobs };
}

const end = (world: JobWorld, ...ids: string[]) => {
  for (const id of ids) world.provider.jobs.get(id)!.state = 'completed';
};
const steps = (rows: readonly { step: string }[]) => rows.map(({ step }) => step);
const waiting = { type: 'provider_wait' };

it('submits each job with its own lines', async () => {
  const { world, part, rows } = await threeJobs();
  expect(await world.submit(part)).toEqual({ kind: 'submitted', to: 6, stopCause: null });
  expect(steps(await rows())).toEqual(['submitted', 'submitted', 'submitted']);
  expect(world.provider.uploads).toHaveLength(3);
  expect(new Set((await rows()).map(({ externalId }) => externalId)).size).toBe(3);
  await world.submit(part);
  expect(world.provider.jobs.size).toBe(3);
});

it('notices the end of a job whose quota the others wait for', async () => {
  const { world, part, rows } = await threeJobs({ settings: { max_open_jobs: 1 } });
  let details: unknown;
  const attempt = () => {
    const env = new MockActivityEnvironment({ heartbeatDetails: details });
    env.on('heartbeat', (beat: unknown) => void (details = beat));
    return world.submit(part, env);
  };
  for (const id of ['remote-1', 'remote-2']) {
    await expect(attempt()).rejects.toMatchObject(waiting);
    expect([...world.provider.jobs.keys()].at(-1)).toBe(id);
    end(world, id);
    // As if the interval between two looks had passed.
    details = undefined;
    await expect(attempt()).rejects.toMatchObject(waiting);
  }
  expect(await attempt()).toMatchObject({ kind: 'submitted' });
  expect(steps(await rows()).sort()).toEqual(['ended', 'ended', 'submitted']);
});

it('is over when all of its jobs have ended, and looks only at those that are due', async () => {
  const { world, part } = await threeJobs();
  await world.submit(part);
  end(world, 'remote-2');
  let details: unknown;
  const first = new MockActivityEnvironment();
  first.on('heartbeat', (beat: unknown) => void (details = beat));
  await expect(world.watch(part, first)).rejects.toMatchObject({
    ...waiting,
    message: expect.stringContaining('2 of 3 jobs wait'),
  });
  end(world, 'remote-1', 'remote-3');
  const looks = world.provider.calls.length;
  const early = new MockActivityEnvironment({ heartbeatDetails: details });
  await expect(world.watch(part, early)).rejects.toMatchObject(waiting);
  expect(world.provider.calls.length).toBe(looks);
  expect(await world.watch(part)).toEqual({ kind: 'ended' });
});

it('collects all jobs under one seal, each with its own outcome', async () => {
  const { world, part, rows, answer } = await threeJobs();
  await world.submit(part);
  end(world, 'remote-1', 'remote-2', 'remote-3');
  await world.watch(part);
  world.provider.lines = [0, 1, 3, 4, 5].map(answer);
  expect(await world.collect(part)).toMatchObject({ next: 2, completed: 2, unanswered: 1 });
  expect((await rows()).map(({ outcome }) => outcome)).toEqual([
    'completed',
    'partial_complete',
    'completed',
  ]);
  expect(await world.deps.journal.listSeals(world.input.batchId)).toHaveLength(1);
  expect((await world.journalled()).map(([line]) => line)).toEqual([0, 1, 3, 4, 5]);
});

it('keeps what other jobs brought while the results of one cannot be read', async () => {
  const { world, part, rows, answer } = await threeJobs();
  await world.submit(part);
  end(world, 'remote-1', 'remote-2', 'remote-3');
  await world.watch(part);
  world.provider.lines = [0, 1, 2, 3, 4, 5].map(answer);
  world.provider.scripted.status = ['transient'];
  await expect(world.collect(part)).rejects.toMatchObject(waiting);
  expect(steps(await rows()).sort()).toEqual(['collected', 'collected', 'ended']);
  expect(await world.collect(part)).toMatchObject({ next: 6, completed: 6, unanswered: 0 });
  expect(await world.journalled()).toHaveLength(6);
});
