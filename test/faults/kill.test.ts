import { expectCompleted } from '../support/expect-completed';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit } from '../support/stack';
import { until } from '../support/until';

const LINES = 600;
const IN_FLIGHT = 20;
const LATENCY_MS = 100;
/** Answers that the backend wrote within the last flush of the journal, 0.2 s (design §7 row 8). */
const LAST_FLUSH = Math.ceil((IN_FLIGHT * 200) / LATENCY_MS);

let backend: RecordingBackend;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend(LATENCY_MS);
  stack = await startStack({
    config: {
      global_inference_gateway: {
        url: backend.url,
        request_timeout: '10s',
        initial_backoff: '50ms',
        max_backoff: '500ms',
      },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '3s' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
});

async function startedBatch(): Promise<string> {
  const batch = await submit(stack.client, chatLines(LINES));
  await until(() => backend.seen.length >= LINES / 4, 60_000, 'a quarter of the batch');
  return batch.id;
}

/** Every line once over both files, in order; nothing answered and flushed was paid for twice. */
async function expectWhole(id: string): Promise<void> {
  await expectCompleted(stack.client, id, { lines: LINES });
  const lines = new Set(backend.seen.map((seen) => seen.requestId));
  expect(lines.size).toBe(LINES);
  expect(backend.seen.length - LINES).toBeLessThanOrEqual(IN_FLIGHT + LAST_FLUSH);
}

describe('kill -9 in the middle of a batch', () => {
  it.each(['worker', 'api', 'temporal', 'postgres'])(
    'of %s: the batch completes, no line lost, none doubled',
    async (part) => {
      const id = await startedBatch();
      const pid = stack.pidOf(part);
      process.kill(pid, 'SIGKILL');
      await expectWhole(id);
      expect(stack.pidOf(part)).not.toBe(pid);
    },
    180_000,
  );
});

describe('kill -9 of the supervisor in the middle of a batch', () => {
  it.each([
    ['alone', []],
    ['and of all that it started', ['worker', 'api', 'temporal', 'postgres']],
  ])(
    '%s: the next start goes on, no line lost, none doubled',
    async (_, parts) => {
      const id = await startedBatch();
      for (const pid of [stack.pid, ...parts.map((part) => stack.pidOf(part))]) {
        process.kill(pid, 'SIGKILL');
      }
      await stack.ended;
      stack = await stack.restart();
      await expectWhole(id);
    },
    180_000,
  );
});

describe('a stop in the middle of a batch', () => {
  it('drains, and the next start goes on where it was; no answered line is sent again', async () => {
    const id = await startedBatch();
    expect(await stack.stop()).toBe(0);
    const answered = backend.seen.filter((seen) => seen.answered).length;
    expect(answered).toBeLessThan(LINES);
    stack = await stack.restart();
    await expectWhole(id);
    expect(backend.seen.length).toBe(LINES);
  }, 180_000);
});
