import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, LocalServer, Received } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import type { TestRequest } from '../support/run-batch';
import { createBatch, inputLines, outcomeOf, runRequests } from '../support/run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack } from '../support/stack';
import { until } from '../support/until';

const CHAT = { endpoint: '/v1/chat/completions' };
const LINES = 400;
/** Longer than the 10 s after which a gateway counts as away (execution §3 "Breaker"). */
const AWAY_MS = 12_000;
const LATENCY_MS = 20;

let server: LocalServer;
let stack: TestStack;
/** What the server does now. */
let mood: Answer = () => undefined;
const seenAtMs: { readonly id: string; readonly atMs: number }[] = [];

const idOf = ({ headers }: Received): string => String(headers['x-request-id']);
const well: Answer = (_, response) =>
  void delay(LATENCY_MS).then(() => response.end('{"model":"m"}'));
const answer: Answer = (request, response, socket) => {
  seenAtMs.push({ id: idOf(request), atMs: performance.now() });
  mood(request, response, socket);
};
const lines = (count: number): TestRequest[] =>
  Array.from({ length: count }, () => ({ body: { model: 'm', messages: [] } }));

beforeAll(async () => {
  server = await startLocalServer(answer);
  stack = await startStack({
    config: {
      global_inference_gateway: {
        url: server.url,
        request_timeout: '10s',
        // Every line has three tries: an outage that counted would burn them within a second.
        max_retries: 2,
        initial_backoff: '200ms',
        max_backoff: '500ms',
      },
      concurrency: { per_model: 20 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
}, 60_000);
beforeEach(() => {
  seenAtMs.length = 0;
  mood = well;
});

/** A batch of which a quarter has been sent. */
async function begunBatch(): Promise<string> {
  const { id } = await createBatch(stack.client, inputLines(CHAT.endpoint, lines(LINES)), CHAT);
  await until(() => seenAtMs.length >= LINES / 4, 30_000, 'a quarter of the batch');
  return id;
}

async function expectWhole(id: string): Promise<void> {
  const { batch, output } = await outcomeOf(stack.client, id, 60_000);
  expect(batch).toMatchObject({
    status: 'completed',
    error_file_id: null,
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  expect(new Set(output.map((line) => line.custom_id)).size).toBe(LINES);
}

describe('a model server that goes away in the middle of a batch', () => {
  it.each([
    ['a moment', 2_000],
    ['longer than its breaker waits', AWAY_MS],
  ])(
    'and takes no connections for %s burns no line',
    async (_, awayMs) => {
      const id = await begunBatch();
      const { port } = server;
      await server.close();
      await delay(awayMs);
      server = await startLocalServer(answer, undefined, port);
      const backAtMs = performance.now();
      await expectWhole(id);
      expect(performance.now() - backAtMs).toBeLessThan(15_000);
    },
    90_000,
  );

  it('and answers 503 meanwhile burns no line, and is left alone but for single probes', async () => {
    const id = await begunBatch();
    mood = (_, response) => response.writeHead(503).end('{"error":{"message":"loading"}}');
    await delay(AWAY_MS);
    const before = seenAtMs.length;
    await delay(2_000);
    // One probe at a time, half a second apart at the longest.
    expect(seenAtMs.length - before).toBeGreaterThanOrEqual(2);
    expect(seenAtMs.length - before).toBeLessThanOrEqual(20);
    mood = well;
    await expectWhole(id);
  }, 90_000);

  it('and says when to come back is asked again no earlier', async () => {
    const id = await begunBatch();
    const refusedAtMs = new Map<string, number>();
    const pausesMs: number[] = [];
    const note = (request: Received): void => {
      const refused = refusedAtMs.get(idOf(request));
      if (refused !== undefined) pausesMs.push(performance.now() - refused);
      refusedAtMs.delete(idOf(request));
    };
    const busy: Answer = (request, response) => {
      note(request);
      refusedAtMs.set(idOf(request), performance.now());
      response.writeHead(503, { 'retry-after': '2' }).end('{}');
    };
    mood = busy;
    // Long enough for lines that have had all their tries.
    await delay(5_000);
    mood = (request, response, socket) => {
      note(request);
      well(request, response, socket);
    };
    await expectWhole(id);
    expect(refusedAtMs.size).toBe(0);
    expect(pausesMs.length).toBeGreaterThan(20);
    expect(Math.min(...pausesMs)).toBeGreaterThanOrEqual(1_990);
  }, 90_000);
});

describe('a slow model beside a fast one behind one gateway', () => {
  it('does not hold it up', async () => {
    const slowMs = 20 * LATENCY_MS;
    const fastAtMs: number[] = [];
    mood = (request, response, socket) => {
      if (request.body.includes('fast')) fastAtMs.push(performance.now());
      const pauseMs = request.body.includes('slow') ? slowMs : 0;
      void delay(pauseMs).then(() => well(request, response, socket));
    };
    const of = (model: string, count: number): TestRequest[] =>
      Array.from({ length: count }, () => ({ body: { model, messages: [] } }));
    const lastFastMs = async (requests: TestRequest[]): Promise<number> => {
      fastAtMs.length = 0;
      const startedMs = performance.now();
      const { batch } = await runRequests(stack.client, requests, CHAT);
      expect(batch.request_counts?.completed).toBe(requests.length);
      return (fastAtMs.at(-1) ?? Infinity) - startedMs;
    };
    const fast = of('fast', 400);
    const aloneMs = await lastFastMs(fast);
    const besideMs = await lastFastMs([...of('slow', 160), ...fast]);
    expect((160 / 20) * slowMs).toBeGreaterThan(2 * aloneMs);
    expect(besideMs).toBeLessThan(2 * aloneMs);
  }, 60_000);
});
