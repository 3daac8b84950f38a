import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import type { Answer, LocalServer, Received } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import type { TestRequest } from './run-batch';
import { createBatch, inputLines, outcomeOf, runRequests } from './run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack } from '../support/stack';
import { until } from '../support/until';
import { PROCESSES } from '../support/variant';

const CHAT = { endpoint: '/v1/chat/completions' };
const PER_MODEL = 4;
/** The limit that two models with the same settings share: more than one of them may have alone. */
const SHARED = 6;
const FAST_MS = 10;
const REQUEST_TIMEOUT_MS = 30_000;
/** Shorter than the request timeout, so that nothing is sent twice. */
const HELD_MS = REQUEST_TIMEOUT_MS - 5_000;
const certificate = (name: string) => join(__dirname, '..', 'inference', 'certificates', name);

/** A model server and the most requests that it had at once. */
interface Gauge {
  server: LocalServer;
  most: number;
}

let folder: string;
let stack: TestStack;
let plain: LocalServer;
let secure: LocalServer;
let shared: Gauge;
let fast: Gauge;
let slow: LocalServer;
/** Common names of the client certificates that the TLS server received. */
const shownNames: unknown[] = [];
/** How the servers answer. */
let answerPlain: Answer = () => undefined;
let answerSlow: Answer = () => undefined;
let answerShared: Answer = () => undefined;

const chat = (model: string, content = 'x'): TestRequest => ({
  body: { model, messages: [{ role: 'user', content }] },
});
const many = (count: number, model: string): TestRequest[] =>
  Array.from({ length: count }, () => chat(model));
const modelOf = ({ body }: Received) => (JSON.parse(body.toString()) as { model: string }).model;
const ok: Answer = (request, response) =>
  response.end(
    JSON.stringify({
      model: modelOf(request),
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  );

function after(ms: number): Answer {
  return (request, response, socket) => void delay(ms).then(() => ok(request, response, socket));
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gateways-'));
  writeFileSync(join(folder, 'plain-key'), 'key-of-plain\n');
  writeFileSync(join(folder, 'elsewhere'), 'key-of-secure\n');
  plain = await startLocalServer((...args) => answerPlain(...args));
  secure = await startLocalServer(
    (request, response, socket) => {
      shownNames.push((socket as TLSSocket).getPeerCertificate().subject?.CN);
      ok(request, response, socket);
    },
    {
      cert: readFileSync(certificate('server.pem')),
      key: readFileSync(certificate('server-key.pem')),
      ca: readFileSync(certificate('ca.pem')),
      requestCert: true,
      rejectUnauthorized: true,
    },
  );
  shared = await startGauge((...args) => answerShared(...args));
  fast = await startGauge(after(FAST_MS));
  slow = await startLocalServer((...args) => answerSlow(...args));
  const common = {
    request_timeout: `${REQUEST_TIMEOUT_MS}ms`,
    max_retries: 1,
    initial_backoff: '300ms',
  };
  const gateway = (url: string) => ({ url, max_backoff: '300ms', ...common });
  stack = await startStack({
    config: {
      secrets_dir: folder,
      concurrency: { per_model: PER_MODEL },
      model_gateways: {
        'org/plain:1': {
          ...gateway(plain.url),
          api_key_name: 'plain-key',
          inference_objective: 'bulk',
          send_fairness_header: true,
        },
        secure: {
          ...gateway(`${secure.url}/behind/`),
          api_key_file: join(folder, 'elsewhere'),
          tls_ca_cert_file: certificate('ca.pem'),
          tls_client_cert_file: certificate('client.pem'),
          tls_client_key_file: certificate('client-key.pem'),
        },
        'twin-a': { ...gateway(shared.server.url), max_concurrency: SHARED },
        'twin-b': { ...gateway(shared.server.url), max_concurrency: SHARED },
        fast: gateway(fast.server.url),
        slow: gateway(slow.url),
      },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  for (const server of [plain, secure, shared?.server, fast?.server, slow]) await server?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);
beforeEach(() => {
  for (const server of [plain, secure, shared.server, fast.server, slow])
    server.received.length = 0;
  answerPlain = ok;
  answerShared = ok;
});

async function startGauge(answer: Answer): Promise<Gauge> {
  let now = 0;
  const gauge = { most: 0 } as Gauge;
  gauge.server = await startLocalServer((request, response, socket) => {
    gauge.most = Math.max(gauge.most, ++now);
    response.on('finish', () => now--);
    answer(request, response, socket);
  });
  return gauge;
}

describe('a gateway for each model', () => {
  it('sends each line to the server of its model, with the key and certificate of that server', async () => {
    const requests = [chat('org/plain:1'), chat('secure'), chat('org/plain:1')];
    const { batch, output } = await runRequests(stack.client, requests, CHAT);
    expect(batch).toMatchObject({ status: 'completed', model: null });
    expect(output.map(({ response }) => response?.body['model'])).toEqual([
      'org/plain:1',
      'secure',
      'org/plain:1',
    ]);
    expect(plain.received).toHaveLength(2);
    expect(secure.received.map(({ url }) => url)).toEqual(['/behind/v1/chat/completions']);
    expect(plain.received[0]?.headers.authorization).toBe('Bearer key-of-plain');
    expect(secure.received[0]?.headers.authorization).toBe('Bearer key-of-secure');
    expect(shownNames).toEqual(['test client']);
  });

  it('sends the documented headers, and the time left anew with each try', async () => {
    answerPlain = (request, response, socket) => {
      if (plain.received.length === 1) response.writeHead(500).end('{}');
      else ok(request, response.setHeader('x-request-id', 'theirs'), socket);
    };
    const created = await createBatch(
      stack.client,
      inputLines(CHAT.endpoint, [chat('org/plain:1')]),
      {
        ...CHAT,
        completionWindow: '1h',
      },
    );
    const { batch, output } = await outcomeOf(stack.client, created.id);
    expect(batch.status).toBe('completed');
    const [first, second] = plain.received.map(({ headers }) => headers);
    expect(first).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': output[0]?.id,
      'x-gateway-inference-objective': 'bulk',
      'x-gateway-inference-fairness-id': 'default',
    });
    expect(second?.['x-request-id']).toBe(output[0]?.id);
    expect(output[0]?.response?.request_id).toBe('theirs');
    const [left, leftLater] = [first, second].map((headers) => headers?.['x-slo-ttft-ms']);
    expect(left).toMatch(/^\d+$/);
    expect(Number(left)).toBeGreaterThan(3_500_000);
    expect(Number(left)).toBeLessThanOrEqual(3_600_000);
    expect(Number(leftLater)).toBeLessThan(Number(left));
  });

  it('sends no key, objective or tenant if none is configured', async () => {
    await runRequests(stack.client, [chat('fast')], CHAT);
    const names = Object.keys(fast.server.received[0]?.headers ?? {});
    expect(names).toContain('x-request-id');
    expect(names.filter((name) => /^authorization$|gateway/.test(name))).toEqual([]);
  });

  it('fails lines of unknown models with model_not_found and completes the others', async () => {
    const requests = [chat('nobody'), chat('fast'), chat('no/body'), chat('fast')];
    const { batch, output, errors } = await runRequests(stack.client, requests, CHAT);
    expect(batch).toMatchObject({
      status: 'completed',
      model: null,
      request_counts: { total: 4, completed: 2, failed: 2 },
    });
    expect(output.map((line) => line.custom_id)).toEqual(['c-1', 'c-3']);
    expect(errors).toMatchObject([
      { custom_id: 'c-0', response: null, error: { code: 'model_not_found' } },
      { custom_id: 'c-2', response: null, error: { code: 'model_not_found' } },
    ]);
  });

  it('completes a batch whose lines all name unknown models', async () => {
    const { batch, errors } = await runRequests(stack.client, many(3, 'nobody'), CHAT);
    expect(batch).toMatchObject({
      status: 'completed',
      output_file_id: null,
      request_counts: { total: 3, completed: 0, failed: 3 },
    });
    expect(errors.map((line) => line.error?.code)).toEqual(Array(3).fill('model_not_found'));
  });

  it('runs the chunks of each model from a queue of its own', async () => {
    const requests = [chat('org/plain:1'), chat('twin-a'), chat('twin-b'), chat('secure')];
    const { batch } = await runRequests(stack.client, requests, CHAT);
    expect((await chunkQueues(batch.id)).sort()).toEqual([
      'nightshift-exec.org/plain:1',
      'nightshift-exec.secure',
      'nightshift-exec.twin-a',
      'nightshift-exec.twin-b',
    ]);
  });

  it('lets models with the same settings share a limit, in addition to their own limits', async () => {
    shared.most = 0;
    // Answers nothing before the limit is reached, and each request after a moment in which it may be exceeded.
    answerShared = (...args) =>
      void until(() => shared.most >= SHARED, HELD_MS, 'the limit to be reached').then(
        () => after(20)(...args),
        () => undefined,
      );
    const requests = [...many(60, 'twin-a'), ...many(60, 'twin-b')];
    const { batch } = await runRequests(stack.client, requests, CHAT);
    expect(batch.request_counts?.completed).toBe(120);
    // Limits are those of one worker.
    expect(shared.most).toBeGreaterThanOrEqual(SHARED);
    expect(shared.most).toBeLessThanOrEqual(PROCESSES * SHARED);
  });
});

describe('a slow model', () => {
  const fastLines = many(150, 'fast');
  const slowLines = many(50, 'slow');
  const mixed = fastLines.flatMap((line, i) => (i % 3 === 0 ? [line, chat('slow')] : [line]));

  it.each([
    ['first', [...slowLines, ...fastLines]],
    ['last', [...fastLines, ...slowLines]],
    ['in between', mixed],
  ])(
    'does not delay a fast one when its lines come %s',
    async (_, requests) => {
      // It answers nothing before the fast model has received all its lines.
      const isFastDone = () => fast.server.received.length === fastLines.length;
      let heldUp = 0;
      fast.most = 0;
      answerSlow = (...args) =>
        void until(isFastDone, HELD_MS, 'the last line of the fast model').then(
          () => ok(...args),
          () => heldUp++,
        );
      const { batch } = await runRequests(stack.client, requests, CHAT);
      expect(heldUp).toBe(0);
      expect(fast.most).toBeGreaterThanOrEqual(PER_MODEL);
      expect(fast.most).toBeLessThanOrEqual(PROCESSES * PER_MODEL);
      expect(batch.request_counts).toEqual({ total: 200, completed: 200, failed: 0 });
      expect(slow.received).toHaveLength(slowLines.length);
    },
    60_000,
  );
});

/** Task queues of a batch's chunks, from the history of its workflow. */
async function chunkQueues(batchId: string): Promise<string[]> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const { events } = await new Client({ connection }).workflow.getHandle(batchId).fetchHistory();
    return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === 'executeChunk' ? [scheduled.taskQueue?.name ?? ''] : [],
    );
  } finally {
    await connection.close();
  }
}
