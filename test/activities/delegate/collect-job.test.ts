import { MockActivityEnvironment } from '@temporalio/testing';
import { wireId } from '../../../core/delegation/job-ids';
import type { LineResult } from '../../../providers/provider';
import { useDatabase } from '../../support/postgres';
import { type JobWorld, jobWorld, type JobWorldOptions } from './job-world';

/** How the results of a job get into the journal (docs/design/delegation.md#collecting). */

const database = useDatabase('provider_jobs', 'batches');
const worlds: JobWorld[] = [];

/** A world whose job has ended with these results. */
async function ended(
  results: (world: JobWorld) => LineResult[],
  options: JobWorldOptions = {},
): Promise<JobWorld> {
  const world = await jobWorld(database.pool, options);
  worlds.push(world);
  await world.submit();
  world.provider.lines = results(world);
  for (const job of world.provider.jobs.values()) job.state = 'completed';
  await world.watch();
  return world;
}

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

const range = (to: number) => Array.from({ length: to }, (_, i) => i);
const statuses = (frames: [number, number][]) => new Map(frames);

it('joins results to lines by their id, in any order', async () => {
  const world = await ended(({ answer }) => [...range(10)].reverse().map((line) => answer(line)));
  const counts = { next: 10, completed: 10, failed: 0, unanswered: 0 };
  expect(await world.collect()).toEqual({ ...counts, stopCause: null });
  expect(await world.journalled()).toEqual(range(10).map((line) => [line, 200]));
  expect(await world.row()).toMatchObject({ step: 'collected', outcome: 'completed' });
  expect(await world.deps.journal.listSeals(world.input.batchId)).toHaveLength(1);
  expect(world.lease.released).toEqual({ to: 10, completed: 10, failed: 0 });
});

it('counts the first of two results, ignores foreign ones, and leaves missing lines open', async () => {
  const world = await ended(({ answer, input }) => [
    answer(0),
    answer(0, { status: 400 }),
    answer(1, { status: 400 }),
    answer(2, { status: 429 }),
    { kind: 'unanswered', wireId: wireId(input.job.jobId, 3), reason: 'expired' },
    answer(4),
    answer(99),
    { ...answer(5), wireId: `n${'0'.repeat(18)}` },
    { ...answer(5), wireId: 'nonsense' },
  ]);
  const counts = { next: 2, completed: 1, failed: 1, unanswered: 7 };
  expect(await world.collect()).toEqual({ ...counts, stopCause: null });
  const expected = new Map([
    [0, 200],
    [1, 400],
    [4, 200],
  ]);
  expect(statuses(await world.journalled())).toEqual(expected);
  expect(await world.kept()).toEqual([[2, 429]]);
  expect(world.collected).toMatchObject([{ doubled: 1, foreign: 3, unanswered: 7 }]);
  expect(await world.row()).toMatchObject({ step: 'collected', outcome: 'partial_complete' });
});

it('sums the tokens of the answers of a job whose provider states none, also of a broken download', async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 50 };
  const body = Buffer.from(JSON.stringify({ model: 'm-far', usage }));
  const world = await ended(({ answer }) => [
    ...range(9).map((line) => answer(line, { body })),
    answer(8, { body }),
    answer(9, { status: 400, body }),
  ]);
  world.provider.scripted.results = ['transient'];
  await expect(world.collect()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  await world.collect();
  const expected = { inputTokens: 900, cachedTokens: 0, outputTokens: 450 };
  expect((await world.row()).usage).toEqual(expected);
  expect(world.collected).toMatchObject([{ costUsd: 0.0018 }]);
});

it('does nothing more for a job that is collected, and returns the same', async () => {
  const world = await ended(({ answer }) => [answer(0), answer(2)]);
  const first = await world.collect();
  const { length } = world.provider.calls;
  expect(await world.collect()).toEqual(first);
  expect(world.provider.calls).toHaveLength(length);
});

it('writes no second answer to a line after a download that broke off', async () => {
  const world = await ended(({ answer }) => range(10).map((line) => answer(line)));
  world.provider.scripted.results = ['transient'];
  await expect(world.collect()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  expect(await world.row()).toMatchObject({ step: 'ended' });
  expect(await world.collect()).toMatchObject({ next: 10, completed: 10 });
  expect(await world.deps.journal.listSeals(world.input.batchId)).toHaveLength(1);
  expect(await world.journalled()).toEqual(range(10).map((line) => [line, 200]));
});

it('reads results with malformed lines again, because their file may have been cut off', async () => {
  const world = await ended(({ answer }) => range(4).map((line) => answer(line)));
  world.provider.malformed.push(1);
  await expect(world.collect()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  world.provider.lines = range(10).map((line) => world.answer(line));
  expect(await world.collect()).toMatchObject({ next: 10, completed: 10 });
  expect(await world.row()).toMatchObject({ step: 'collected', outcome: 'completed' });
});

it('reads results again that have fewer answers than the provider counts', async () => {
  const world = await ended(({ answer }) => range(4).map((line) => answer(line)));
  world.provider.counts = { total: 10, completed: 10, failed: 0 };
  await expect(world.collect()).rejects.toMatchObject({ nextRetryDelay: 5_000 });
  world.provider.lines = range(10).map((line) => world.answer(line));
  expect(await world.collect()).toMatchObject({ next: 10, completed: 10 });
  expect(await world.row()).toMatchObject({ step: 'collected', outcome: 'completed' });
});

it('leaves lines open whose results are malformed at the third read', async () => {
  const world = await ended(({ answer }) => [answer(0)]);
  world.provider.malformed.push(9);
  const third = new MockActivityEnvironment({ heartbeatDetails: { malformedReads: 2 } });
  expect(await world.collect({}, third)).toMatchObject({ next: 1, unanswered: 9 });
  expect(await world.row()).toMatchObject({ step: 'collected', outcome: 'partial_complete' });
});

it('does not say that a job is collected if another attempt holds its range', async () => {
  const world = await ended(({ answer }) => [answer(0)]);
  world.lease.tell({ lost: true });
  await expect(world.collect()).rejects.toMatchObject({ type: 'provider_wait' });
  expect(await world.row()).toMatchObject({ step: 'ended' });
  expect(await world.deps.journal.listSeals(world.input.batchId)).toEqual([]);
});

it('seals a part of more than 10,000 positions in pieces', async () => {
  const world = await ended(({ answer }) => range(20_001).map((line) => answer(line)), {
    lines: 20_001,
  });
  expect(await world.collect()).toMatchObject({ next: 20_001, completed: 20_001, unanswered: 0 });
  expect(await world.deps.journal.listSeals(world.input.batchId)).toHaveLength(3);
});

it('counts only the positions that the workflow has not counted before', async () => {
  const statuses = [200, 400, 200, 200, 400, 200];
  const world = await ended(
    ({ answer }) => statuses.map((status, line) => answer(line, { status })),
    { lines: 8 },
  );
  const taken = [
    { from: 1, to: 3 },
    { from: 5, to: 8 },
  ];
  expect(await world.collect({ taken })).toMatchObject({ next: 6, completed: 2, failed: 1 });
  expect(await world.collect({ taken: [] })).toMatchObject({ next: 6, completed: 0, failed: 0 });
  expect(world.lease.released).toEqual({ to: 6, completed: 4, failed: 2 });
});

it('keeps the first final 429 or 5xx of a line once, however often the results are read', async () => {
  const world = await ended(({ answer }) => [
    answer(0, { status: 503 }),
    answer(0, { status: 429 }),
    answer(1, { status: 500 }),
    answer(1),
  ]);
  world.provider.scripted.results = ['transient'];
  await expect(world.collect()).rejects.toMatchObject({ type: 'provider_wait' });
  expect(await world.collect()).toMatchObject({ next: 0, unanswered: 9 });
  expect(await world.kept()).toEqual([
    [0, 503],
    [1, 500],
  ]);
  expect(await world.journalled()).toEqual([[1, 200]]);
});

it('keeps a 400 for lines that staging has left out, and does not wait for their answers', async () => {
  const body = (line: number) => (line % 2 === 0 ? '{"bad":1}' : '{}');
  const world = await ended(({ answer }) => [1, 3].map((line) => answer(line)), { lines: 4, body });
  expect(await world.row()).toMatchObject({ lines: 2 });
  const first = await world.collect();
  expect(first).toMatchObject({ next: 0, unanswered: 0 });
  expect(await world.collect()).toEqual(first);
  expect(await world.kept()).toEqual([
    [0, 400],
    [2, 400],
  ]);
});

it('keeps a 400 for the lines of a job that had nothing to send', async () => {
  const world = await jobWorld(database.pool, { lines: 2, body: () => '{"bad":1}' });
  worlds.push(world);
  expect(await world.submit()).toMatchObject({ kind: 'empty' });
  expect(await world.collect()).toMatchObject({ next: 0, unanswered: 0 });
  expect(await world.kept()).toHaveLength(2);
  expect(world.provider.calls).toEqual([]);
});

it('reads and writes nothing more when the batch has ended', async () => {
  const world = await ended(({ answer }) => [answer(0)]);
  world.lease.tell({ terminal: true });
  const { length } = world.provider.calls;
  expect(await world.collect()).toMatchObject({ next: 0, stopCause: 'failed' });
  expect(world.provider.calls).toHaveLength(length);
  expect(await world.journalled()).toEqual([]);
  expect(await world.row()).toMatchObject({ step: 'ended' });
});

it('ends lines with an error that the provider names as the reason to fail the job', async () => {
  const world = await jobWorld(database.pool);
  worlds.push(world);
  await world.submit();
  const lineErrors = [{ index: 3, code: 'bad_line', message: 'secret', param: 'x' }];
  for (const job of world.provider.jobs.values())
    Object.assign(job, { state: 'failed', lineErrors });
  await world.watch();
  expect(await world.collect()).toMatchObject({ next: 0, unanswered: 9 });
  expect(await world.journalled()).toEqual([[3, 400]]);
  expect(await world.row()).toMatchObject({ error: { code: null, reason: 'lines_refused' } });
});

describe('results that cannot be had', () => {
  const goneLong = () =>
    new MockActivityEnvironment({ heartbeatDetails: { goneSinceMs: Date.now() - 900_000 } });

  it('are given up when the provider has not known them for 15 minutes', async () => {
    const world = await ended(({ answer }) => [answer(0)]);
    world.provider.scripted.results = ['gone', 'gone'];
    await expect(world.collect()).rejects.toMatchObject({ nextRetryDelay: 30_000 });
    expect(await world.collect({}, goneLong())).toMatchObject({ next: 1, unanswered: 9 });
    expect(await world.row()).toMatchObject({ step: 'abandoned' });
    expect(await world.journalled()).toEqual([[0, 200]]);
  });

  it('are given up when the batch no longer waits, and what came is delivered', async () => {
    const world = await ended(({ answer }) => [answer(0)]);
    world.provider.scripted.status = ['transient'];
    const over = { giveUpAtMs: Date.now() - world.input.harvestGraceMs - 1 };
    expect(await world.collect(over)).toMatchObject({ next: 0, unanswered: 10 });
    expect(await world.row()).toMatchObject({ step: 'abandoned' });
  });

  it('are tried again at the last moment, whatever pause the provider asks for', async () => {
    const world = await ended(() => []);
    world.provider.scripted.status = ['transient'];
    world.provider.retryAfterMs = 3_600_000;
    const giveUpAtMs = Date.now() - world.input.harvestGraceMs + 10_000;
    const failure = await world.collect({ giveUpAtMs }).catch((error: unknown) => error);
    expect((failure as { nextRetryDelay: number }).nextRetryDelay).toBeLessThanOrEqual(10_000);
  });
});
