import { Client, Connection } from '@temporalio/client';
import type OpenAI from 'openai';
import { journalledAnswers } from '../support/journal-files';
import type { RecordingBackend } from '../support/recording-backend';
import { sentAfter, startRecordingBackend } from '../support/recording-backend';
import { outcomeOf } from './run-batch';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit, untilTerminal } from '../support/stack';
import { startOwnTemporal, TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';

const LINES = 3_000;
const LATENCY_MS = 30;
const IN_FLIGHT = 20;
const STALLED_MS = 1_000;

let backend: RecordingBackend;
let stack: TestStack;
let connection: Connection;
let temporal: Client;

beforeAll(async () => {
  // A server that suggests continue-as-new after 20 events instead of 4,096: after one round of chunks.
  const { address } = await startOwnTemporal('impatient', [
    'limit.historyCount.suggestContinueAsNew=20',
  ]);
  connection = await Connection.connect({ address });
  temporal = new Client({ connection });
  backend = await startRecordingBackend(LATENCY_MS);
  stack = await startStack({
    config: {
      temporal: { address },
      global_inference_gateway: {
        url: backend.url,
        request_timeout: '10s',
        initial_backoff: '50ms',
        max_backoff: '500ms',
      },
      concurrency: { per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '5s' },
      batch: { cancel_grace: '2s' },
    },
  });
}, TEMPORAL_START_MS + STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
  await connection?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
  backend.latencyMs = LATENCY_MS;
});

const currentRun = async (id: string): Promise<string> =>
  (await temporal.workflow.getHandle(id).describe()).runId;

const journalled = (id: string): number => journalledAnswers(stack, id);

/** Resolves as soon as the batch's workflow has continued as a new run. */
async function switched(id: string): Promise<void> {
  const first = await until(() => currentRun(id).catch(() => null), 10_000, 'the first run', 5);
  await until(async () => (await currentRun(id)) !== first, 30_000, 'the second run', 5);
}

/** A batch whose workflow continued as a new run before its window ended. A busy machine gets a longer window. */
async function switchedInTime(): Promise<OpenAI.Batch> {
  for (let windowSec = 4; ; windowSec *= 2) {
    backend.latencyMs = LATENCY_MS;
    const batch = await submit(stack.client, chatLines(LINES), `${windowSec}s`);
    const endMs = (batch.expires_at ?? 0) * 1000;
    const first = await until(() => currentRun(batch.id).catch(() => null), 10_000, 'a run', 5);
    const isSwitched = async () => (await currentRun(batch.id)) !== first;
    await until(async () => Date.now() >= endMs || isSwitched(), 30_000, 'the second run', 5);
    // From now on it cannot complete within its window.
    backend.latencyMs = STALLED_MS;
    if (Date.now() < endMs) return batch;
    await untilTerminal(stack.client, batch.id);
    backend.seen.length = 0;
  }
}

async function runsOf(id: string): Promise<number> {
  let runs = 0;
  for await (const run of temporal.workflow.list({ query: `WorkflowId = "${id}"` })) {
    if (run.runId !== '') runs++;
  }
  return runs;
}

/** Every line is once in one of the files. Those without an answer have `code`. */
async function expectEveryLineOnce(id: string, code: string | null): Promise<number> {
  const { batch, output, errors } = await outcomeOf(stack.client, id);
  const ids = [...output, ...errors].map((line) => line.custom_id);
  expect([ids.length, new Set(ids).size]).toEqual([LINES, LINES]);
  expect(new Set(errors.map((line) => line.error?.code))).toEqual(
    new Set(code === null ? [] : [code]),
  );
  expect(batch.request_counts).toEqual({ total: LINES, completed: output.length, failed: 0 });
  return output.length;
}

describe('a batch whose workflow continues in new runs', () => {
  it('completes with each line sent once', async () => {
    const { id } = await submit(stack.client, chatLines(LINES));
    await expectEveryLineOnce(id, null);
    expect(backend.seen).toHaveLength(LINES);
    await until(async () => (await runsOf(id)) >= 3, 10_000, 'three runs to be listed');
  }, 90_000);

  it('is cancelled around the change of runs and keeps its answers', async () => {
    const { id } = await submit(stack.client, chatLines(LINES));
    await switched(id);
    // It cannot complete before the cancel.
    backend.latencyMs = STALLED_MS;
    expect((await stack.client.batches.cancel(id)).status).toBe('cancelling');
    expect(await expectEveryLineOnce(id, 'batch_cancelled')).toBeGreaterThan(0);
  }, 90_000);

  it('expires in a later run at the deadline it was created with', async () => {
    const created = await switchedInTime();
    expect(await expectEveryLineOnce(created.id, 'batch_expired')).toBeGreaterThan(0);
    const deadlineMs = (created.expires_at ?? 0) * 1000;
    expect(sentAfter(deadlineMs, backend.seen)).toEqual([]);
  }, 90_000);

  it('completes if its worker is killed around the change of runs', async () => {
    const { id } = await submit(stack.client, chatLines(LINES));
    await switched(id);
    const pid = stack.pidOf('worker');
    process.kill(pid, 'SIGKILL');
    // Answers that had not reached the journal are lost with it.
    const lost = backend.seen.filter(({ answered }) => answered).length - journalled(id);
    await expectEveryLineOnce(id, null);
    expect(stack.pidOf('worker')).not.toBe(pid);
    expect(new Set(backend.seen.map((seen) => seen.requestId)).size).toBe(LINES);
    expect(backend.seen.length - LINES).toBeLessThanOrEqual(IN_FLIGHT + lost);
  }, 120_000);
});
