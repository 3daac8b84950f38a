import { MockActivityEnvironment } from '@temporalio/testing';
import { sha256Hex } from '../../../activities/delegate/open-parts';
import { jobId as repeatedId, wireId } from '../../../core/delegation/job-ids';
import { useDatabase } from '../../support/postgres';
import { type JobWorld, jobWorld } from './job-world';

/** From the row of a job to the provider's acceptance (docs/design/provider-jobs.md#one-attempt). */

const database = useDatabase('provider_jobs', 'batches');
const worlds: JobWorld[] = [];

async function open(
  ...options: Parameters<typeof jobWorld> extends [unknown, ...infer R] ? R : []
) {
  const world = await jobWorld(database.pool, ...options);
  worlds.push(world);
  return world;
}

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

const LATE = { giveUpAtMs: Date.now() - 1_000 };

it('stages, uploads and creates a job, with the lines in the order of the plan', async () => {
  const world = await open({ lines: 3 });
  expect(await world.submit()).toEqual({ kind: 'submitted', to: 3, stopCause: null });
  expect(world.provider.uploads).toHaveLength(1);
  expect(world.provider.uploads[0]?.match(/"n[0-9a-f]{12}00000(\d)"/g)).toHaveLength(3);
  const row = { step: 'submitted', lines: 3, externalId: 'remote-1', sentWindow: '24h' };
  expect(await world.row()).toMatchObject(row);
  const staged = world.store.list(`batches/${world.input.batchId}/delegated/`);
  let objects = 0;
  for await (const { size } of staged) objects += Math.sign(size);
  expect(objects).toBe(1);
});

it('creates nothing while the uploaded input is processed, and uploads it once', async () => {
  const world = await open();
  world.provider.inputStates.push('processing', 'processing');
  while (world.provider.inputStates.length > 0) {
    await expect(world.submit()).rejects.toMatchObject({ nextRetryDelay: 15_000 });
    expect(await world.row()).toMatchObject({ step: 'uploaded', creatingUntilMs: null });
  }
  expect(world.provider.calls).toEqual(['upload']);
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(world.provider.uploads).toHaveLength(1);
});

it('does nothing more for a job that is submitted', async () => {
  const world = await open();
  await world.submit();
  const { length } = world.provider.calls;
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(world.provider.calls).toHaveLength(length);
});

it('ends a part at the limit of lines, and tells where', async () => {
  const world = await open({ lines: 10, settings: { max_lines: 4 } });
  expect(await world.submit()).toMatchObject({ kind: 'submitted', to: 4 });
  expect(await world.row()).toMatchObject({ lines: 4, to: 4 });
});

it('ends a part at the limit of bytes, but takes a first line of any length', async () => {
  const world = await open({ lines: 10, settings: { max_bytes: 10 } });
  expect(await world.submit()).toMatchObject({ kind: 'submitted', to: 1 });
});

it('ends a part before a line that differs in what the lines of a job have in common', async () => {
  const languages = ['bad', 'de', 'bad', 'de', 'en', 'de'];
  const body = (line: number) =>
    languages[line] === 'bad' ? '{"bad":1}' : `{"common":"${languages[line]}"}`;
  const world = await open({ lines: 6, body });
  expect(await world.submit()).toMatchObject({ kind: 'submitted', to: 4 });
  expect(await world.row()).toMatchObject({ lines: 2, to: 4 });
});

it('stages the same bytes however many lines make a piece', async () => {
  // 100 KB, so that pieces of 256 KiB end within lines, after lines, and with one line of their own.
  const long = (line: number) =>
    `{"line":${line},"text":"${'x'.repeat(line === 4 ? 400_000 : 100_000)}"}`;
  const world = await open({ lines: 7, body: long });
  await world.submit();
  const { job } = world.input;
  const lines = Array.from(
    { length: 7 },
    (_, line) => `{"custom_id":"${wireId(job.jobId, line)}","body":${long(line)}}\n`,
  );
  expect(world.provider.uploads).toEqual([lines.join('')]);
  expect(await world.row()).toMatchObject({ lines: 7, bytes: lines.join('').length });
});

it.each([
  { spareBytes: 0, to: 3 },
  { spareBytes: -1, to: 2 },
])('fills a job to the last byte that its provider takes: $spareBytes', async (limit) => {
  const line = '{"custom_id":"n123456789012000000","body":{}}\n';
  const settings = { max_bytes: 3 * line.length + limit.spareBytes };
  const world = await open({ lines: 5, body: () => '{}', settings });
  expect(await world.submit()).toMatchObject({ to: limit.to });
});

describe('a job that repeats one for which there was no quota', () => {
  /** A world whose job is the second one of its part; the first one was refused this long ago. */
  async function second(agoMs: number, reason?: 'quota') {
    const world = await open({ lines: 2 });
    const { job, batchId } = world.input;
    const identity = { batchId, safeModel: 'm', from: 0, generation: 0 };
    const first = await world.deps.jobs.open({
      ...{ ...identity, id: job.jobId, to: 2, ordinal: 0, tenant: 't', model: 'm' },
      ...{ providerModel: 'm-far', provider: 'far', account: 'account-1' },
    });
    const message = 'no quota';
    await world.deps.jobs.refuse(first.id, { code: 'quota', message, ...(reason && { reason }) });
    const ended = 'update provider_jobs set ended_at = now() - make_interval(secs => $1)';
    await database.pool.query(ended, [agoMs / 1000]);
    const jobId = repeatedId({ ...identity, ordinal: 1 }, sha256Hex);
    return { world, over: { job: { ...job, jobId, ordinal: 1 } } };
  }

  it('waits for a minute after the refusal', async () => {
    const { world, over } = await second(10_000, 'quota');
    const failure: unknown = await world.submit(over).catch((error: unknown) => error);
    const { nextRetryDelay } = failure as { nextRetryDelay: number };
    expect(nextRetryDelay).toBeGreaterThan(40_000);
    expect(nextRetryDelay).toBeLessThanOrEqual(50_000);
    expect(world.provider.calls).toEqual([]);
  });

  it('is submitted after the minute', async () => {
    const { world, over } = await second(61_000, 'quota');
    expect(await world.submit(over)).toMatchObject({ kind: 'submitted' });
  });

  it('waits for no other refusal', async () => {
    const { world, over } = await second(0);
    expect(await world.submit(over)).toMatchObject({ kind: 'submitted' });
  });
});

it('leaves lines open that the provider cannot express', async () => {
  const world = await open({ lines: 3, body: (line) => (line === 1 ? '{"bad":1}' : '{}') });
  expect(await world.submit()).toMatchObject({ kind: 'submitted', to: 3 });
  expect(await world.row()).toMatchObject({ lines: 2 });
});

it('submits nothing if no line is left to send', async () => {
  const world = await open({ body: () => '{"bad":1}' });
  expect(await world.submit()).toMatchObject({ kind: 'empty', to: 10 });
  expect(await world.submit()).toMatchObject({ kind: 'empty' });
  expect(world.provider.calls).toEqual([]);
});

it('looks up a job whose create was not answered, and creates no second one', async () => {
  const world = await open();
  world.provider.scripted.create = ['ambiguous'];
  await expect(world.submit()).rejects.toMatchObject({ type: 'provider_wait' });
  expect((await world.row()).creatingUntilMs).not.toBeNull();
  await endLease();
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(world.provider.jobs.size).toBe(1);
  expect(await world.row()).toMatchObject({ externalId: 'remote-1', isAdopted: true });
});

it.each([
  { outcome: 'not_sent', retryAfterMs: null, pauseMs: 5_000 },
  { outcome: 'capacity', retryAfterMs: null, pauseMs: 60_000 },
  { outcome: 'capacity', retryAfterMs: 7_000, pauseMs: 7_000 },
  { outcome: 'auth', retryAfterMs: null, pauseMs: 300_000 },
])('gives the lease back after $outcome, and waits $pauseMs ms', async (scripted) => {
  const world = await open();
  world.provider.scripted.create = [scripted.outcome];
  world.provider.retryAfterMs = scripted.retryAfterMs;
  const { pauseMs } = scripted;
  await expect(world.submit()).rejects.toMatchObject({ nextRetryDelay: pauseMs });
  expect(await world.row()).toMatchObject({ creatingUntilMs: null, externalId: null });
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
  expect(world.provider.jobs.size).toBe(1);
});

it('ends a job that the provider refuses to create', async () => {
  const world = await open();
  world.provider.scripted.create = ['refused'];
  expect(await world.submit()).toMatchObject({ kind: 'refused' });
  expect(await world.row()).toMatchObject({ step: 'refused' });
  expect(await world.submit()).toMatchObject({ kind: 'refused' });
});

it.each(['refused', 'gone'])('ends a job whose upload is %s', async (outcome) => {
  const world = await open();
  world.provider.scripted.upload = [outcome];
  expect(await world.submit()).toMatchObject({ kind: 'refused' });
  expect(await world.row()).toMatchObject({ step: 'refused' });
  expect(world.provider.calls).toEqual(['upload']);
});

it('waits a minute for the quota of uploads', async () => {
  const world = await open();
  world.provider.scripted.upload = ['capacity'];
  await expect(world.submit()).rejects.toMatchObject({ nextRetryDelay: 60_000 });
  expect(await world.submit()).toMatchObject({ kind: 'submitted' });
});

it('gives up a job that was never sent when the batch no longer waits', async () => {
  const world = await open();
  expect(await world.submit(LATE)).toMatchObject({ kind: 'late' });
  expect(await world.row()).toMatchObject({ step: 'abandoned' });
  expect(world.provider.calls).toEqual([]);
});

it('creates nothing after the batch has stopped waiting, also if it has tried before', async () => {
  const world = await open();
  world.provider.scripted.create = ['capacity'];
  await expect(world.submit()).rejects.toMatchObject({ type: 'provider_wait' });
  expect(await world.submit(LATE)).toMatchObject({ kind: 'submitted' });
  expect(world.provider.jobs.size).toBe(0);
  // The watch looks the job up, and gives it up.
  expect(await world.watch(LATE)).toEqual({ kind: 'abandoned' });
  expect(await world.row()).toMatchObject({ step: 'abandoned' });
});

it('reports the stop of a batch, and creates nothing', async () => {
  const world = await open();
  await database.pool.query(`update batches set stop_cause = 'cancelled'`);
  expect(await world.submit()).toMatchObject({ kind: 'stopped', stopCause: 'cancelled' });
  expect(world.provider.jobs.size).toBe(0);
});

it('sends no create after it was cancelled', async () => {
  const world = await open();
  const env = new MockActivityEnvironment();
  const { find } = world.deps.batches;
  let calls = 0;
  world.deps.batches.find = (id) => {
    // The second reader is the look-up, the third one the create.
    if (++calls === 3) env.cancel();
    return find(id);
  };
  await expect(world.submit({}, env)).rejects.toThrow();
  expect(world.provider.calls).toContain('find');
  expect(world.provider.jobs.size).toBe(0);
  expect(await world.row()).toMatchObject({ creatingUntilMs: null });
});

it('cancels a second job that a late attempt has created beside the recorded one', async () => {
  const world = await open();
  world.provider.onAccepted = async () => {
    await world.deps.jobs.recordCreated(world.input.job.jobId, {
      ...{ externalId: 'earlier', adopted: false },
    });
  };
  await world.submit();
  expect(await world.row()).toMatchObject({ externalId: 'earlier' });
  expect(world.provider.cancelled).toEqual(['remote-1']);
});

async function endLease(): Promise<void> {
  await database.pool.query(
    `update provider_jobs set creating_until = now() - interval '1 second'`,
  );
}
