import { rmSync } from 'node:fs';
import type OpenAI from 'openai';
import { APIError } from 'openai';
import { Client as Postgres } from 'pg';
import { faultsOf, startAudit, statesOf, wayOf } from '../support/audit';
import { journalledAnswers } from '../support/journal-files';
import { POSTGRES_START_MS } from '../support/postgres';
import type { PhaseScene } from './held-batch';
import { holdBatch, holdInTime } from './held-batch';
import type { ProxiedStack } from './proxied-stack';
import { startProxiedStack } from './proxied-stack';
import type { RecordingBackend } from '../support/recording-backend';
import { sentAfter, startRecordingBackend } from '../support/recording-backend';
import type { ResultLine } from '../support/stack';
import { chatLines, resultLines, STACK_START_MS, submit, untilTerminal } from '../support/stack';
import { TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';

/** At {@link IN_FLIGHT} at a time enough for seconds, so that a test finds the batch running. */
const LINES = 300;
const IN_FLIGHT = 10;
const LATENCY_MS = 150;
const TEST_MS = 120_000;

let backend: RecordingBackend;
let proxied: ProxiedStack;
let holder: Postgres;
let scene: PhaseScene;

beforeAll(
  async () => {
    backend = await startRecordingBackend(LATENCY_MS);
    proxied = await startProxiedStack({
      global_inference_gateway: { url: backend.url, request_timeout: '10s' },
      // Longer than any answer takes here, so that requests in flight at a cancel are answered.
      batch: { cancel_grace: '5s' },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      limits: { tenant: { max_enqueued_requests: 1_000_000 } },
      worker: { heartbeat_timeout: '5s' },
    });
    await startAudit(proxied.database.pool);
    holder = new Postgres({ connectionString: proxied.database.url });
    await holder.connect();
    scene = { proxied, backend, holder, lines: LINES };
  },
  TEMPORAL_START_MS + POSTGRES_START_MS + STACK_START_MS,
);
afterAll(async () => {
  await holder?.end();
  await proxied?.close();
  await backend?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
  backend.latencyMs = LATENCY_MS;
});
afterEach(async () => {
  await holder.query('rollback');
  expect(faultsOf(await statesOf(proxied.database.pool))).toEqual([]);
});

const api = (): OpenAI => proxied.stack.client;
const cancel = (id: string) => api().batches.cancel(id);
/** Cancels as the button in Temporal's UI does. */
const cancelNatively = (id: string) => proxied.temporal.workflow.getHandle(id).cancel();
const signalWorkers = (signal: NodeJS.Signals): void => {
  for (const pid of proxied.stack.pidsOf('worker')) process.kill(pid, signal);
};
const statusOf = async (id: string) => (await api().batches.retrieve(id)).status;

/** How many chunks of a batch may still send requests. */
async function chunksAtWork(id: string): Promise<number> {
  const { rows } = await proxied.database.pool.query<{ count: number }>(
    'select count(*) as count from chunk_progress where batch_id = $1 and not released',
    [id],
  );
  return rows[0]?.count ?? 0;
}

/** The ended batch with every line once in one of the files, and the codes of lines without an answer. */
async function endOf(id: string) {
  const batch = await untilTerminal(api(), id, 60_000);
  const output = await resultLines(api(), batch.output_file_id);
  const errors = await resultLines(api(), batch.error_file_id);
  const ids = [...output, ...errors].map(({ custom_id: customId }) => customId);
  expect(ids.sort()).toEqual(Array.from({ length: LINES }, (_, i) => `c-${i}`).sort());
  expect(output.every(({ response }) => response?.status_code === 200)).toBe(true);
  expect(batch.request_counts).toEqual({ total: LINES, completed: output.length, failed: 0 });
  const codes = new Set(errors.map((line: ResultLine) => line.error?.code));
  return { batch, output, codes: [...codes], way: await wayOf(proxied.database.pool, id) };
}

const CANCELS = [
  ['API', cancel],
  ['Temporal UI', cancelNatively],
] as const;

/** The final status of a small batch that is cancelled this long after its start. */
async function cancelledAfter(waitMs: number): Promise<string> {
  const { id } = await submit(api(), chatLines(2));
  await until(async () => (await statusOf(id)) !== 'validating', 20_000, 'its start', 5);
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  const answer = await cancel(id).catch((error: unknown) => error as APIError);
  const { status } = await untilTerminal(api(), id);
  if (!(answer instanceof APIError)) expect(status).toBe('cancelled');
  else {
    expect(answer.status).toBe(409);
    expect(answer.headers?.get('x-should-retry')).toBe('false');
    expect(status).toBe('completed');
  }
  return status;
}

describe('a cancel request', () => {
  it.each([
    ['before the workflow starts', 'API', cancel],
    ...CANCELS.map(([by, act]) => ['validating', by, act] as const),
  ] as const)(
    '%s, by the %s, ends the batch with nothing sent and every line in the error file',
    async (phase, _by, act) => {
      const { id, release } = await holdBatch(scene, phase);
      await act(id);
      await until(async () => (await statusOf(id)) === 'cancelling', 10_000, 'cancelling');
      await release();
      const { batch, codes, way } = await endOf(id);
      expect(batch).toMatchObject({
        ...{ status: 'cancelled', output_file_id: null, in_progress_at: null },
        ...{ finalizing_at: null, cancelling_at: expect.any(Number), failed_at: null },
      });
      expect(codes).toEqual(['batch_cancelled']);
      expect(way).toEqual(['validating', 'cancelling', 'cancelled']);
      expect(backend.seen).toEqual([]);
    },
    TEST_MS,
  );

  it.each(CANCELS)(
    'in progress, by the %s, keeps the answers',
    async (_by, act) => {
      const { id } = await holdBatch(scene, 'in progress');
      await act(id);
      const { batch, output, codes, way } = await endOf(id);
      expect(batch.status).toBe('cancelled');
      expect(batch.finalizing_at).toBeNull();
      // Requests in flight may finish within the grace, and do.
      expect(output).toHaveLength(backend.seen.length);
      expect(output.length).toBeLessThan(LINES);
      expect(codes).toEqual(['batch_cancelled']);
      expect(way).toEqual(['validating', 'in_progress', 'cancelling', 'cancelled']);
    },
    TEST_MS,
  );

  it.each(CANCELS)(
    'while finalizing, by the %s, ends cancelled with the whole output',
    async (_by, act) => {
      const { id, release } = await holdBatch(scene, 'finalizing');
      await act(id);
      await until(async () => (await statusOf(id)) === 'cancelling', 10_000, 'cancelling');
      await release();
      const { batch, output, way } = await endOf(id);
      expect(batch).toMatchObject({ status: 'cancelled', error_file_id: null });
      expect(output).toHaveLength(LINES);
      expect(way).toEqual([
        ...['validating', 'in_progress', 'finalizing', 'cancelling', 'cancelled'],
      ]);
    },
    TEST_MS,
  );

  it(
    'that is sent a hundred times at once counts once',
    async () => {
      const counted = async () =>
        (await proxied.stack.metric('worker', 'batch_cancellation_total{')).join();
      const before = await counted();
      const { id } = await holdBatch(scene, 'in progress');
      const answers = await Promise.all(Array.from({ length: 100 }, () => cancel(id)));
      for (const { status } of answers) expect(['cancelling', 'cancelled']).toContain(status);
      await endOf(id);
      const { events } = await proxied.temporal.workflow.getHandle(id).fetchHistory();
      const signals = events?.filter((event) => event.workflowExecutionSignaledEventAttributes);
      expect(signals).toHaveLength(1);
      const total = (lines: string) =>
        [...lines.matchAll(/ (\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
      // The worker counts an end after the commit that shows it.
      const isCounted = async () => total(await counted()) > total(before);
      await until(isCounted, 10_000, 'the cancel to be counted');
      expect(total(await counted())).toBe(total(before) + 1);
    },
    TEST_MS,
  );

  it(
    'shows in the UI where its workflow waits, in short stacks',
    async () => {
      const { id } = await holdBatch(scene, 'in progress');
      const stacks = await proxied.temporal.workflow.getHandle(id).query<string>('__stack_trace');
      await cancel(id);
      await endOf(id);
      const frames = stacks.split('\n\n').map((stack) => stack.trim().split('\n'));
      expect(Math.max(...frames.map((lines) => lines.length))).toBeLessThanOrEqual(4);
      expect(
        frames.flat().filter((line) => line.includes('dist/workflows/model-chunks.js:')),
      ).not.toEqual([]);
    },
    TEST_MS,
  );

  it(
    'at the moment of completion ends in one of the two statuses and stays there',
    async () => {
      backend.latencyMs = 1;
      const ends = new Set<string>();
      // Searches for that moment: later after a cancel that won, earlier after one that came too late.
      const seek = async (firstWaitMs: number): Promise<void> => {
        let waitMs = firstWaitMs;
        for (let round = 0; round < 10 || (ends.size < 2 && round < 30); round++) {
          const status = await cancelledAfter(waitMs);
          ends.add(status);
          waitMs = status === 'cancelled' ? waitMs * 1.4 + 5 : waitMs * 0.7;
        }
      };
      await Promise.all([seek(40), seek(100), seek(250)]);
      expect([...ends].sort()).toEqual(['cancelled', 'completed']);
    },
    TEST_MS,
  );

  it(
    'while Temporal is down stops the requests at once and ends the batch when Temporal is back',
    async () => {
      const { id } = await holdBatch(scene, 'in progress');
      await proxied.temporalProxy.become('refuse');
      expect((await cancel(id)).status).toBe('cancelling');
      await until(async () => (await chunksAtWork(id)) === 0, 20_000, 'the last chunk to end');
      const sent = backend.seen.length;
      expect(sent).toBeLessThan(LINES);
      expect(await statusOf(id)).toBe('cancelling');
      await proxied.temporalProxy.become('pass');
      const { batch, output } = await endOf(id);
      expect(batch.status).toBe('cancelled');
      expect(backend.seen.length).toBe(sent);
      expect(output).toHaveLength(sent);
    },
    TEST_MS,
  );

  it(
    'while a worker hands over its chunk at a shutdown reaches the next worker',
    async () => {
      backend.latencyMs = 1_500;
      const { id } = await holdBatch(scene, 'in progress');
      const worker = proxied.stack.pidOf('worker');
      signalWorkers('SIGTERM');
      await cancel(id);
      const { batch, codes, output } = await endOf(id);
      expect(batch.status).toBe('cancelled');
      expect(codes).toEqual(['batch_cancelled']);
      expect(output).toHaveLength(backend.seen.length);
      expect(proxied.stack.pidOf('worker')).not.toBe(worker);
    },
    TEST_MS,
  );
});

it(
  'a batch in progress whose input is gone fails and keeps its answers',
  async () => {
    const { id } = await holdBatch(scene, 'in progress');
    const isWritten = (): boolean => journalledAnswers(proxied.stack, id) > 0;
    await until(isWritten, 10_000, 'a first answer in the journal');
    const { rows } = await proxied.database.pool.query<{ key: string }>(
      'select input_object_key as key from batches where id = $1',
      [id],
    );
    rmSync(proxied.stack.objectPath(rows[0]?.key ?? ''));
    signalWorkers('SIGKILL');
    const batch = await untilTerminal(api(), id, 60_000);
    expect(batch).toMatchObject({
      status: 'failed',
      errors: { data: [{ code: 'system_error' }] },
      request_counts: { total: LINES, failed: 0 },
    });
    const output = await resultLines(api(), batch.output_file_id);
    expect(output.length).toBeGreaterThan(0);
    expect(output).toHaveLength(batch.request_counts?.completed ?? -1);
    expect(await wayOf(proxied.database.pool, id)).toEqual(['validating', 'in_progress', 'failed']);
  },
  TEST_MS,
);

describe('the end of the window', () => {
  it.each(['before the workflow starts', 'validating'] as const)(
    '%s expires the batch with nothing sent and every line in the error file',
    async (phase) => {
      const { id, release } = await holdBatch(scene, phase, '1s');
      const { expires_at: expiresAt } = await api().batches.retrieve(id);
      await until(() => Date.now() > ((expiresAt ?? 0) + 1) * 1000, 10_000, 'the end');
      await release();
      const { batch, codes, way } = await endOf(id);
      expect(batch).toMatchObject({
        ...{ status: 'expired', output_file_id: null, in_progress_at: null },
        ...{ finalizing_at: null, expired_at: expect.any(Number) },
      });
      expect(codes).toEqual(['batch_expired']);
      expect(way).toEqual(['validating', 'expired']);
      expect(backend.seen).toEqual([]);
    },
    TEST_MS,
  );

  it.each(['pass', 'refuse'] as const)(
    'in progress stops the requests in time while connections to Temporal %s',
    async (mood) => {
      backend.latencyMs = 500;
      const { id } = await holdInTime(scene, 'in progress');
      const { expires_at: expiresAt } = await api().batches.retrieve(id);
      const deadlineMs = (expiresAt ?? 0) * 1000;
      await proxied.temporalProxy.become(mood);
      await until(() => Date.now() > deadlineMs + 1_500, 10_000, 'the end');
      await proxied.temporalProxy.become('pass');
      const { batch, codes, way } = await endOf(id);
      expect(batch.status).toBe('expired');
      expect(codes).toEqual(['batch_expired']);
      expect(way).toEqual(['validating', 'in_progress', 'expired']);
      expect(sentAfter(deadlineMs, backend.seen)).toEqual([]);
    },
    TEST_MS,
  );

  it(
    'while no worker runs expires the batch as soon as one is back',
    async () => {
      signalWorkers('SIGSTOP');
      const { id, expires_at: expiresAt } = await submit(api(), chatLines(LINES), '1s');
      await until(() => Date.now() > ((expiresAt ?? 0) + 1) * 1000, 10_000, 'the end');
      signalWorkers('SIGCONT');
      const { batch, codes } = await endOf(id);
      expect(batch.status).toBe('expired');
      expect(codes).toEqual(['batch_expired']);
      expect(backend.seen).toEqual([]);
    },
    TEST_MS,
  );

  it(
    'while finalizing does not expire the batch: everything is answered',
    async () => {
      const { id, release } = await holdInTime(scene, 'finalizing');
      const { expires_at: expiresAt } = await api().batches.retrieve(id);
      await until(() => Date.now() > ((expiresAt ?? 0) + 1) * 1000, 10_000, 'the end');
      await release();
      const { batch, output, way } = await endOf(id);
      expect(batch).toMatchObject({ status: 'completed', error_file_id: null, expired_at: null });
      expect(output).toHaveLength(LINES);
      expect(way).toEqual(['validating', 'in_progress', 'finalizing', 'completed']);
    },
    TEST_MS,
  );

  it(
    'a second after creation delivers the answers that the batch has',
    async () => {
      backend.latencyMs = 1;
      const one = await submit(api(), chatLines(1), '1s');
      expect(['completed', 'expired']).toContain((await untilTerminal(api(), one.id)).status);
      backend.latencyMs = 300;
      const { id } = await submit(api(), chatLines(LINES), '1s');
      const { batch, output } = await endOf(id);
      expect(batch.status).toBe('expired');
      const deadlineMs = (batch.expires_at ?? 0) * 1000;
      expect(sentAfter(deadlineMs, backend.seen)).toEqual([]);
      expect(output.length).toBeLessThan(LINES);
    },
    TEST_MS,
  );
});
