import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { faultsOf, startAudit, statesOf } from '../support/audit';
import { POSTGRES_START_MS } from '../support/postgres';
import type { ProxiedStack } from './proxied-stack';
import { startProxiedStack } from './proxied-stack';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import { chatLines, resultLines, STACK_START_MS, submit, untilTerminal } from '../support/stack';
import { TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';
import { STORE } from '../support/variant';

const LINES = 300;
const IN_FLIGHT = 10;
const LATENCY_MS = 200;
/** Two progress writes in a row that PostgreSQL did not take. */
const FAILED_TICKS = 2;
/** The statement timeout of 10 s, a second for its answer, and a reserve for busy machines. */
const ANSWER_MS = 20_000;
const TEST_MS = 120_000;

let backend: RecordingBackend;
let proxied: ProxiedStack;

beforeAll(
  async () => {
    backend = await startRecordingBackend(LATENCY_MS);
    proxied = await startProxiedStack({
      global_inference_gateway: { url: backend.url, request_timeout: '10s' },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '5s' },
      // A silent server is given up after four tries: with the default of 30 s after two minutes.
      ...(STORE === 's3' ? { object_store: { request_timeout: '3s' } } : {}),
    });
    await startAudit(proxied.database.pool);
  },
  TEMPORAL_START_MS + POSTGRES_START_MS + STACK_START_MS,
);
afterAll(async () => {
  await proxied?.close();
  await backend?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
  backend.latencyMs = LATENCY_MS;
});
afterEach(async () => {
  await Promise.all([proxied.temporalProxy.become('pass'), proxied.postgresProxy.become('pass')]);
  expect(faultsOf(await statesOf(proxied.database.pool))).toEqual([]);
});

async function startedBatch(): Promise<string> {
  const { id } = await submit(proxied.stack.client, chatLines(LINES));
  await until(() => backend.seen.length > 2 * IN_FLIGHT, 30_000, 'a few answers');
  return id;
}

/** The batch completes with every line once, and at most `resent` requests were sent twice. */
async function expectWhole(id: string, resent: number): Promise<void> {
  const batch = await untilTerminal(proxied.stack.client, id);
  expect(batch).toMatchObject({
    ...{ status: 'completed', error_file_id: null },
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  const output = await resultLines(proxied.stack.client, batch.output_file_id);
  expect(new Set(output.map(({ custom_id: customId }) => customId)).size).toBe(LINES);
  const lines = new Set(backend.seen.map(({ requestId }) => requestId));
  expect(lines.size).toBe(LINES);
  expect(backend.seen.length - lines.size).toBeLessThanOrEqual(resent);
}

const logsFromNow = () => ({
  worker: proxied.stack.logFromNow('worker'),
  api: proxied.stack.logFromNow('api'),
});
const pids = () => [...proxied.stack.pidsOf('api'), ...proxied.stack.pidsOf('worker')];

describe.each(['refuse', 'hang'] as const)(
  'an outage in the middle of a batch, in which connections %s,',
  (mood) => {
    it(
      'to PostgreSQL: requests go on, the API answers 503 in time, and no process ends',
      async () => {
        const id = await startedBatch();
        const before = pids();
        const logs = logsFromNow();
        const ticks = await failedTicks();
        await proxied.postgresProxy.become(mood);
        const sent = backend.seen.length;
        const startedMs = performance.now();
        const answer = await fetch(`${proxied.stack.baseUrl}/batches/${id}`);
        expect(performance.now() - startedMs).toBeLessThan(ANSWER_MS);
        expect(answer.status).toBe(503);
        expect(answer.headers.get('retry-after')).not.toBeNull();
        expect(await answer.json()).toMatchObject({ error: { type: 'server_error', code: null } });
        await until(() => backend.seen.length > sent + IN_FLIGHT, 20_000, 'further requests');
        const hasFailed = async () => (await failedTicks()) >= ticks + FAILED_TICKS;
        await until(hasFailed, 30_000, 'ticks that Postgres did not take');
        expect(logs.worker()).toContain('progress not written');
        await untilReported('postgres', logs);
        await proxied.postgresProxy.become('pass');
        await expectWhole(id, 0);
        expect(pids()).toEqual(before);
      },
      TEST_MS,
    );

    it(
      'to Temporal: the chunk goes on, new batches wait, and no process ends',
      async () => {
        const id = await startedBatch();
        const before = pids();
        const logs = logsFromNow();
        await proxied.temporalProxy.become(mood);
        const sent = backend.seen.length;
        const late = await submit(proxied.stack.client, chatLines(1));
        expect(late.status).toBe('validating');
        await until(() => backend.seen.length > sent, 10_000, 'further requests');
        await until(() => hasTimedOut(id), 30_000, 'a heartbeat timeout');
        await untilReported('temporal', logs);
        await proxied.temporalProxy.become('pass');
        // The heartbeat of the chunk timed out, so requests in flight may be sent again.
        await expectWholeBut(id, late.id);
        expect(pids()).toEqual(before);
      },
      TEST_MS,
    );
  },
);

/** How many progress writes of the workers have failed since their start. */
async function failedTicks(): Promise<number> {
  const lines = await proxied.stack.metric('worker', 'progress_write_failures_total');
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Whether the heartbeat of a chunk has timed out, so that another worker may run it. */
async function hasTimedOut(id: string): Promise<boolean> {
  const { raw } = await proxied.temporal.workflow.getHandle(id).describe();
  return (raw.pendingActivities ?? []).some(({ attempt }) => (attempt ?? 0) > 1);
}

/** Resolves when metrics and logs of API and worker report the outage. */
async function untilReported(
  dependency: string,
  logs: ReturnType<typeof logsFromNow>,
): Promise<void> {
  for (const part of ['api', 'worker'] as const) {
    const isTold = async (): Promise<boolean> => {
      const values = await proxied.stack.metric(part, `dependency_up{dependency="${dependency}"`);
      return (
        values.some((value) => value.endsWith(' 0')) &&
        logs[part]().includes(`${dependency} does not answer`)
      );
    };
    await until(isTold, 20_000, `${part} to say that ${dependency} is away`);
  }
}

async function expectWholeBut(id: string, other: string): Promise<void> {
  expect((await untilTerminal(proxied.stack.client, other)).status).toBe('completed');
  const ofOther = (requestId: string): boolean => requestId.includes(other.slice('batch_'.length));
  const own = backend.seen.filter(({ requestId }) => !ofOther(requestId));
  backend.seen.splice(0, Infinity, ...own);
  await untilTerminal(proxied.stack.client, id);
  backend.seen.splice(0, Infinity, ...backend.seen.filter(({ requestId }) => !ofOther(requestId)));
  await expectWhole(id, 2 * IN_FLIGHT);
}

/** A folder is unmounted; an S3 server is frozen. */
const STORE_AWAY =
  STORE === 's3'
    ? {
        begin: () => process.kill(proxied.stack.pidOf('s3'), 'SIGSTOP'),
        end: () => process.kill(proxied.stack.pidOf('s3'), 'SIGCONT'),
      }
    : {
        begin: () => rename(storeFolder(), `${storeFolder()}-away`),
        end: () => rename(`${storeFolder()}-away`, storeFolder()),
      };

function storeFolder(): string {
  return join(proxied.stack.dataDir, 'objects');
}

it(
  'an object store that is unmounted or silent for a while delays a batch, which sends no line twice',
  async () => {
    const id = await startedBatch();
    const logs = logsFromNow();
    await STORE_AWAY.begin();
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([chatLines(1)]), 'input.jsonl');
    const refused = await fetch(`${proxied.stack.baseUrl}/files`, { method: 'POST', body: form });
    expect(refused.status).toBe(503);
    await untilReported('object_store', logs);
    await until(() => backend.inFlight() === 0, 20_000, 'the end of sending');
    await STORE_AWAY.end();
    await expectWhole(id, 0);
  },
  TEST_MS,
);
