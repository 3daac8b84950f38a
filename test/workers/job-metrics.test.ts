import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { asFailure } from '../../activities/runtime/failure';
import { NightshiftError } from '../../core/errors';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { createGivenBack } from '../../workers/given-back';
import { measureJobs } from '../../workers/job-metrics';
import type { StepActivities } from '../../workers/wiring';
import { movedSeries } from '../support/metric-values';

type Steps = Pick<StepActivities, (typeof STEPS)[number]>;

const STEPS = [
  ...['openBatch', 'projectStatus', 'claimStop', 'ingest', 'executeChunk', 'endUnrouted'],
  ...['finalize', 'awaitReleased', 'awaitRoute', 'recordUnfinalized', 'deliverLate'],
] as (keyof StepActivities)[];
const SLOTS: readonly string[] = [
  ...['ingest', 'executeChunk', 'endUnrouted', 'finalize', 'deliverLate'],
];

/** Activities of which each calls `run`, measured. */
function measured(run: (name: string) => unknown) {
  const registry = createMetricsRegistry('worker');
  registry.clear();
  const metrics = createWorkerMetrics(registry);
  const begun: string[] = [];
  const waits: (number | null)[] = [];
  const activities = Object.fromEntries(
    STEPS.map((name) => [name, async () => run(name)]),
  ) as unknown as Steps;
  const guard = { isTripped: false };
  const wrapped = measureJobs(activities, {
    metrics,
    batches: {
      beginStep: (batchId, { step, worker }) => {
        begun.push(`${batchId} ${step} ${worker}`);
        const wait = waits.shift();
        return wait === undefined ? Promise.reject(new Error('away')) : Promise.resolve(wait);
      },
    },
    givenBack: createGivenBack(metrics, () => guard.isTripped),
    worker: 'w',
  });
  const call = async (
    name: keyof Steps,
    over: { runId?: string; batchId?: string; model?: string } = {},
  ) => {
    const { runId = 'r', batchId = 'b', model = 'm' } = over;
    const info = { workflowExecution: { workflowId: 'b', runId } };
    const env = new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
    return env.run(wrapped[name] as (input: unknown) => Promise<unknown>, { batchId, model });
  };
  const jobs = () => movedSeries(registry, 'jobs_processed_total');
  return { registry, begun, waits, call, jobs, guard };
}

const job = (result: string, reason: string): string =>
  `jobs_processed_total{result="${result}",reason="${reason}"}`;

it('observes the wait of a batch when its first ingestion begins, and its plan', async () => {
  const world = measured(() => ({ kind: 'planned', lineCount: 101 }));
  world.waits.push(3, null);
  await world.call('ingest');
  await world.call('ingest');
  await world.call('ingest');
  expect(world.begun).toEqual(Array(3).fill('b ingestion w'));
  expect(await movedSeries(world.registry, 'job_queue_wait_duration_seconds_')).toMatchObject({
    job_queue_wait_duration_seconds_sum: 3,
    job_queue_wait_duration_seconds_count: 1,
  });
  expect(await movedSeries(world.registry, 'plan_build_duration_seconds_count')).toEqual({
    'plan_build_duration_seconds_count{size_bucket="1000"}': 3,
  });
});

it('observes no plan of a file that was refused', async () => {
  const world = measured(() => ({ kind: 'invalid', errorCount: 1 }));
  expect(await world.call('ingest')).toEqual({ kind: 'invalid', errorCount: 1 });
  expect(await movedSeries(world.registry, 'plan_build')).toEqual({});
});

it('counts a workflow whose batch has ended, and one without a row once for each run', async () => {
  const rows = [
    { found: true, status: 'expired' },
    { found: true, status: 'finalizing' },
    ...Array<object>(3).fill({ found: false, status: 'validating' }),
  ];
  const world = measured(() => rows.shift());
  await world.call('openBatch');
  await world.call('openBatch');
  for (const runId of ['r1', 'r1', 'r2']) await world.call('openBatch', { runId });
  expect(await world.jobs()).toEqual({
    [job('skipped', 'not_runnable_state')]: 1,
    [job('skipped', 'db_inconsistency')]: 2,
  });
});

it('counts each attempt at a step to which PostgreSQL did not answer', async () => {
  const away = new NightshiftError('postgres_unavailable', 'away');
  const errors = [away, asFailure(away), new NightshiftError('commit_unknown', 'cut')];
  const world = measured(() => {
    throw errors.shift() as Error;
  });
  await expect(world.call('openBatch')).rejects.toBe(away);
  await expect(world.call('finalize')).rejects.toBeInstanceOf(ApplicationFailure);
  await expect(world.call('claimStop')).rejects.toThrow('cut');
  expect(await world.jobs()).toEqual({ [job('re_enqueued', 'db_transient')]: 3 });
});

it('counts by model each time a model finds no worker with a gateway for it', async () => {
  const answers = [new Error('no gateway'), new Error('no gateway'), { queue: 'q' }];
  const world = measured(() => {
    const answer = answers.shift();
    return answer instanceof Error ? Promise.reject(answer) : answer;
  });
  const wait = () => world.call('awaitRoute', { model: 'llama-3' });
  await expect(wait()).rejects.toThrow('no gateway');
  await expect(wait()).rejects.toThrow('no gateway');
  await wait();
  expect(await movedSeries(world.registry, 'model_route_waits_total')).toEqual({
    'model_route_waits_total{model="llama-3"}': 2,
  });
});

it('does not count other failures', async () => {
  const world = measured(() => Promise.reject(new Error('full')));
  for (const name of STEPS) await expect(world.call(name)).rejects.toThrow('full');
  expect(await world.jobs()).toEqual({});
});

it.each([
  ['none', false],
  ['guard_shutdown', true],
])('counts a batch once that a shutdown gives back, with reason %s', async (reason, isTripped) => {
  const world = measured(() => {
    const context = Context.current() as unknown as Record<string, unknown>;
    Object.assign(context, { cancellationSignal: AbortSignal.abort() });
    Object.defineProperty(context, 'cancellationDetails', { value: { workerShutdown: true } });
    return Promise.reject(new CancelledFailure('WORKER_SHUTDOWN'));
  });
  world.guard.isTripped = isTripped;
  for (const name of ['ingest', 'finalize'] as const) {
    await expect(world.call(name)).rejects.toBeInstanceOf(CancelledFailure);
  }
  expect(await world.jobs()).toEqual({ [job('re_enqueued', reason)]: 1 });
});

it.each(STEPS)('shows a slot as occupied only while a step runs in it: %s', async (name) => {
  const active = async () =>
    (await movedSeries(world.registry, 'active_workers'))['active_workers'];
  const during: unknown[] = [];
  const world = measured(async () => {
    during.push(await active());
    return { found: true, status: 'validating' };
  });
  await world.call(name);
  expect(during[0]).toBe(SLOTS.includes(name) ? 1 : undefined);
  expect(await active()).toBeUndefined();
});
