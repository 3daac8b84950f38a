import { expectCompleted } from './expect-completed';
import { journalledAnswers } from '../support/journal-files';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import type { OtlpReceiver, ReceivedSpan } from '../support/otlp-receiver';
import { startHttpReceiver } from '../support/otlp-receiver';
import { chatLines, STACK_START_MS, startStack, submit } from '../support/stack';
import { until } from '../support/until';
import { PROCESSES } from '../support/variant';

const LINES = 600;
const IN_FLIGHT = 20;
const LATENCY_MS = 100;

let backend: RecordingBackend;
let collector: OtlpReceiver;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend(LATENCY_MS);
  collector = await startHttpReceiver();
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
      tracing: { otlp_endpoint: collector.url, protocol: 'http/protobuf', request_ratio: 0.1 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
  await collector?.close();
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
  return answered - journalledAnswers(stack, id);
}

/** Every line has one result, in order. Only lines in flight and lost answers were sent twice. */
async function expectWhole(id: string, lost: number): Promise<void> {
  await expectCompleted(stack.client, id, { lines: LINES });
  const lines = new Set(backend.seen.map((seen) => seen.requestId));
  expect(lines.size).toBe(LINES);
  expect(backend.seen.length - LINES).toBeLessThanOrEqual(PROCESSES * IN_FLIGHT + lost);
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

describe('the trace of a batch whose worker was killed', () => {
  it('is one tree, from the create call to the end, with spans of both workers', async () => {
    let isHeld = true;
    backend.hold = (seen) => isHeld && backend.seen.indexOf(seen) >= LINES / 4;
    const { id } = await submit(stack.client, chatLines(LINES));
    const spansOf = (name: string) =>
      collector.spans.filter((span) => span.name === name && span.attributes['batch.id'] === id);
    await until(() => spansOf('ingest-and-plan').length > 0, 30_000, 'the span of ingestion');
    await until(() => backend.seen.length >= LINES / 4 + IN_FLIGHT, 30_000, 'requests in flight');
    for (const pid of stack.pidsOf('worker')) process.kill(pid, 'SIGKILL');
    isHeld = false;
    await expectCompleted(stack.client, id, { lines: LINES });
    const [root] = await until(() => nonEmpty(spansOf('process-batch')), 30_000, 'process-batch');
    await until(() => spansOf('finalize').length > 0, 30_000, 'the span of finalization');
    const [create] = spansOf('api-create-batch');
    const spans = collector.spans.filter(({ traceId }) => traceId === create?.traceId);
    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(ids.size).toBe(spans.length);
    expect(spans.filter(({ parentSpanId }) => !ids.has(parentSpanId))).toEqual([create]);
    expect(root).toMatchObject({
      ...{ parentSpanId: create?.spanId, service: 'nightshift-worker', isError: false },
      attributes: {
        'batch.status': 'completed',
        'batch.request.total': LINES,
        'batch.request.completed': LINES,
        'batch.request.failed': 0,
      },
    });
    const chunks = spansOf('execute-chunk');
    expect(
      Math.max(...chunks.map((chunk) => Number(chunk.attributes['temporal.activity.attempt']))),
    ).toBeGreaterThan(1);
    const workers = new Set(
      spans
        .filter(({ service }) => service === 'nightshift-worker')
        .map(({ instance }) => instance),
    );
    expect(workers.size).toBeGreaterThanOrEqual(2);
    expectModelServerTookPart(spans);
  }, 180_000);
});

/** Sampled requests carried the header that names their span. */
function expectModelServerTookPart(spans: readonly ReceivedSpan[]): void {
  const requests = spans.filter(({ name }) => name === 'http-request');
  const given = new Map(backend.seen.map(({ headers }) => [headers['traceparent'], headers]));
  expect(requests.length).toBeGreaterThan(10);
  for (const { traceId, spanId, attributes } of requests) {
    const headers = given.get(`00-${traceId}-${spanId}-01`);
    expect(headers?.['x-request-id']).toBe(attributes['batch.line.id']);
  }
}

function nonEmpty<T>(list: T[]): T[] | null {
  return list.length === 0 ? null : list;
}

describe('SIGKILL of the supervisor in the middle of a batch', () => {
  it.each([
    ['alone', []],
    ['and of all its processes', ['worker', 'api', 'temporal', 'postgres']],
  ])(
    '%s: the next start goes on, and no line is lost or delivered twice',
    async (_, parts) => {
      const id = await startedBatch();
      for (const pid of [stack.pid, ...parts.flatMap((part) => stack.pidsOf(part))]) {
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
