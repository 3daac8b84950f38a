import { expectCompleted } from './expect-completed';
import { journalledAnswers } from '../support/journal-files';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit } from '../support/stack';
import { until } from '../support/until';

const LINES = 600;
const IN_FLIGHT = 20;
const LATENCY_MS = 100;

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

/**
 * Answers that are not in the journal yet. A worker that dies now loses them
 * (docs/design/execution.md#what-a-killed-worker-costs).
 */
function notJournalled(id: string): number {
  const answered = backend.seen.filter((seen) => seen.answered).length;
  return answered - journalledAnswers(stack.dataDir, id);
}

/** Every line has one result, in order. Only lines in flight and lost answers were sent twice. */
async function expectWhole(id: string, lost: number): Promise<void> {
  await expectCompleted(stack.client, id, { lines: LINES });
  const lines = new Set(backend.seen.map((seen) => seen.requestId));
  expect(lines.size).toBe(LINES);
  expect(backend.seen.length - LINES).toBeLessThanOrEqual(IN_FLIGHT + lost);
}

describe('SIGKILL in the middle of a batch', () => {
  it.each(['worker', 'api', 'temporal', 'postgres'])(
    'of %s: the batch completes, and no line is lost or delivered twice',
    async (part) => {
      const id = await startedBatch();
      const pid = stack.pidOf(part);
      process.kill(pid, 'SIGKILL');
      await expectWhole(id, notJournalled(id));
      expect(stack.pidOf(part)).not.toBe(pid);
    },
    180_000,
  );
});

describe('SIGKILL of the supervisor in the middle of a batch', () => {
  it.each([
    ['alone', []],
    ['and of all its processes', ['worker', 'api', 'temporal', 'postgres']],
  ])(
    '%s: the next start goes on, and no line is lost or delivered twice',
    async (_, parts) => {
      const id = await startedBatch();
      for (const pid of [stack.pid, ...parts.map((part) => stack.pidOf(part))]) {
        process.kill(pid, 'SIGKILL');
      }
      await stack.ended;
      const lost = notJournalled(id);
      stack = await stack.restart();
      await expectWhole(id, lost);
    },
    180_000,
  );
});

describe('a stop in the middle of a batch', () => {
  it('drains, and the next start goes on without sending an answered line again', async () => {
    const id = await startedBatch();
    expect(await stack.stop()).toBe(0);
    const answered = backend.seen.filter((seen) => seen.answered).length;
    expect(answered).toBeLessThan(LINES);
    stack = await stack.restart();
    await expectWhole(id, 0);
    expect(backend.seen.length).toBe(LINES);
  }, 180_000);
});
