import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { packageRoot } from '../../platform/package-root';
import { metricValues } from '../support/metric-values';
import { startRecordingBackend, type RecordingBackend } from '../support/recording-backend';
import {
  chatLines,
  STACK_START_MS,
  startStack,
  submit,
  untilTerminal,
  type TestStack,
} from '../support/stack';
import { until } from '../support/until';

/**
 * The metrics pages of API and worker after known traffic. `test/workers/truth` moves every series; this
 * shows that the whole product serves them, and those of Temporal's SDK beside them.
 */
const TEST_MS = 120_000;

let backend: RecordingBackend;
let stack: TestStack;
let temporal: Client;
/** Lines of these models wait for their answer. */
const held = new Set<string>();
const refusedOnce = new Map<string, number>();

beforeAll(async () => {
  backend = await startRecordingBackend();
  backend.hold = ({ body }) => [...held].some((model) => body.includes(`"${model}"`));
  backend.judge = ({ requestId, body }) => {
    if (body.includes('"refuses"')) return { status: 400, body: '{"error":{}}' };
    const status = body.includes('"limits"') ? 429 : body.includes('"breaks"') ? 500 : null;
    if (status === null || refusedOnce.has(requestId)) return null;
    refusedOnce.set(requestId, status);
    return { status, body: '{"error":{}}' };
  };
  const gateway = { url: backend.url, initial_backoff: '1ms', max_backoff: '10ms' };
  stack = await startStack({
    config: {
      global_inference_gateway: { ...gateway, request_timeout: '60s' },
      batch: { cancel_grace: '1s' },
      worker: { heartbeat_timeout: '5s' },
    },
    // Each process has a page of its own.
    processes: 1,
  });
  const connection = await Connection.connect({ address: stack.temporalAddress });
  temporal = new Client({ connection });
}, STACK_START_MS);
afterAll(async () => {
  await temporal?.connection.close();
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);

const values = async (part: 'api' | 'worker', prefix = ''): Promise<Record<string, number>> =>
  metricValues((await stack.metric(part, prefix)).join('\n'));

/** A batch of so many lines of one model. */
async function batchOf(model: string, lines: number, window?: string): Promise<string> {
  const text = chatLines(lines, () => model);
  return (await submit(stack.client, text, window)).id;
}

const endOf = async (id: string) => (await untilTerminal(stack.client, id)).status;

/** A batch whose requests are all at the model server, which holds them. */
async function heldBatch(model: string, lines: number, window?: string): Promise<string> {
  held.add(model);
  const id = await batchOf(model, lines, window);
  const sent = () => backend.seen.filter(({ body }) => body.includes(`"${model}"`)).length;
  await until(() => sent() === lines, 20_000, `requests of ${model}`);
  return id;
}

it(
  'after known traffic have the values that it explains',
  async () => {
    expect(await endOf(await batchOf('answers', 5))).toBe('completed');
    expect(await endOf(await batchOf('refuses', 2))).toBe('completed');
    expect(await endOf(await batchOf('limits', 1))).toBe('completed');
    expect(await endOf(await batchOf('breaks', 3))).toBe('completed');
    expect(await endOf((await submit(stack.client, '{"no":"request"}')).id)).toBe('failed');

    // The worker is frozen while the batch is created and cancelled.
    process.kill(stack.pidOf('worker'), 'SIGSTOP');
    const queued = await batchOf('answers', 1);
    await stack.client.batches.cancel(queued);
    process.kill(stack.pidOf('worker'), 'SIGCONT');
    expect(await endOf(queued)).toBe('cancelled');

    const running = await heldBatch('by-api', 2);
    const atWork = await values('worker');
    expect(atWork['model_inflight_requests{model="by-api"}']).toBe(2);
    expect(atWork['active_workers']).toBe(1);
    await until(
      async () => (await values('api', 'batches_open'))['batches_open{status="in_progress"}'] === 1,
      20_000,
      'the open batch to be shown',
    );
    expect(await values('api', 'batch_waiting_lines')).toEqual({ batch_waiting_lines: 2 });
    await stack.client.batches.cancel(running);
    const inUi = await heldBatch('by-ui', 2);
    await temporal.workflow.getHandle(inUi).cancel();
    const late = await heldBatch('late', 2, '5s');
    expect([await endOf(running), await endOf(inUi)]).toEqual(['cancelled', 'cancelled']);
    expect(await endOf(late)).toBe('expired');
    held.clear();

    // The worker counts an end after the commit that shows it.
    await until(
      async () => {
        const { active_workers: active, ...all } = await values('worker');
        return active === 0 && all[EXPIRED] === 1;
      },
      20_000,
      'the last end to be counted',
    );
    expect(await values('worker')).toMatchObject(WORKER);
    expect(await values('api')).toMatchObject(API);
  },
  TEST_MS,
);

const EXPIRED = 'jobs_processed_total{result="expired",reason="expired_execution"}';

/** Seven batches that reached a model server, one refused file, one cancelled in the queue. */
const WORKER = {
  'jobs_processed_total{result="success",reason="none"}': 4,
  'jobs_processed_total{result="failed",reason="invalid_input"}': 1,
  'jobs_processed_total{result="cancelled",reason="none"}': 3,
  [EXPIRED]: 1,
  'batch_cancellation_total{phase="queued"}': 1,
  'batch_cancellation_total{phase="in_progress"}': 2,
  'batch_job_e2e_latency_seconds_count{status="completed"}': 4,
  job_queue_wait_duration_seconds_count: 9,
  batch_first_request_seconds_count: 7,
  'requests_settled_total{model="answers"}': 5,
  'request_errors_by_model_total{model="answers"}': 0,
  'requests_settled_total{model="refuses"}': 2,
  'request_errors_by_model_total{model="refuses"}': 2,
  'requests_settled_total{model="breaks"}': 3,
  'request_errors_by_model_total{model="breaks"}': 0,
  'model_request_retries_total{model="breaks"}': 3,
  'model_request_retries_total{model="limits"}': 1,
  'request_retries_by_cause_total{cause="server_error"}': 3,
  'request_retries_by_cause_total{cause="rate_limited"}': 1,
  'model_request_execution_duration_seconds_count{model="breaks"}': 6,
  processor_inflight_requests: 0,
  active_workers: 0,
  'dependency_up{dependency="temporal"}': 1,
};

const API = {
  'http_requests_total{method="POST",path="/v1/files",status="200"}': 9,
  'http_request_duration_seconds_count{method="POST",path="/v1/batches",status="200"}': 9,
  'http_requests_total{method="POST",path="/v1/batches/:batch_id/cancel",status="200"}': 2,
  'http_requests_in_flight{method="POST",path="/v1/batches"}': 0,
  'file_storage_operations_total{operation="store",component="apiserver",status="success"}': 9,
  'dependency_up{dependency="postgres"}': 1,
};

it('include those of the SDK, with the names, types and labels of the page', async () => {
  const text = (await stack.metric('worker', '')).join('\n');
  const explained = readFileSync(join(packageRoot(), 'docs', 'metrics.md'), 'utf8').matchAll(
    /^\| `(temporal_\w+)` \| (\w+) \| ([^|]+) \|/gm,
  );
  const shown = [...explained].filter(([, name]) => text.includes(`# TYPE ${name} `));
  expect(shown.length).toBeGreaterThanOrEqual(5);
  for (const [, name = '', type, labels = ''] of shown) {
    expect(text).toContain(`# TYPE ${name} ${type}\n`);
    const [, given = ''] = new RegExp(`^${name}(?:_count)?\\{(.*)\\}`, 'm').exec(text) ?? [];
    const found = [...given.matchAll(/(\w+)="/g)].map(([, label]) => label);
    const listed = [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label);
    expect([name, ...found.sort()]).toEqual([name, ...[...listed, 'process'].sort()]);
  }
});

it('include the slots and waits of the SDK', async () => {
  const sdk = await values('worker', 'temporal_');
  const found = (name: string, labels: RegExp) =>
    Object.entries(sdk).filter(([series]) => series.startsWith(`${name}{`) && labels.test(series));
  const batchQueue = /task_queue="nightshift-batch".*worker_type="ActivityWorker"/;
  const [[, free] = []] = found('temporal_worker_task_slots_available', batchQueue);
  const [[, used] = []] = found('temporal_worker_task_slots_used', batchQueue);
  expect((free ?? 0) + (used ?? 0)).toBe(16);
  for (const name of ['activity', 'workflow_task']) {
    const waits = found(`temporal_${name}_schedule_to_start_latency_seconds_count`, /task_queue/);
    expect(waits.some(([, count]) => count > 0)).toBe(true);
  }
  expect(found('temporal_sticky_cache_size', /task_queue/)).not.toEqual([]);
  const ours = Object.keys(await values('worker')).filter((series) => !(series in sdk));
  expect(ours.filter((series) => series.startsWith('temporal'))).toEqual([]);
});

it(
  'of a worker that was killed begin again, and name the batch that it left',
  async () => {
    const id = await heldBatch('survives', 2);
    const pid = stack.pidOf('worker');
    process.kill(pid, 'SIGKILL');
    await until(() => (stack.pidNow('worker') ?? pid) !== pid, 30_000, 'a new worker');
    held.clear();
    expect(await endOf(id)).toBe('completed');
    const recovered = 'batch_startup_recovery_total{status="in_progress",action="resumed"}';
    const isCounted = async () => recovered in (await values('worker').catch(() => ({})));
    await until(isCounted, 20_000, 'the recovered batch');
    expect(await values('worker')).toMatchObject({
      [recovered]: 1,
      'jobs_processed_total{result="success",reason="none"}': 1,
      'requests_settled_total{model="survives"}': 2,
    });
  },
  TEST_MS,
);
