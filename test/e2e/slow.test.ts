import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, LocalServer, Received } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import type { TestRequest } from './run-batch';
import { createBatch, inputLines, outcomeOf } from './run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack } from '../support/stack';
import { until } from '../support/until';
import { PROCESSES } from '../support/variant';

const CHAT = { endpoint: '/v1/chat/completions' };
const LINES = 400;
const LATENCY_MS = 20;
const LINES_AT_ONCE = 20;
const MAX_RETRIES = 2;
const INITIAL_BACKOFF_MS = 200;
/** The shortest pause of an open breaker, less what a timer may be early. */
const PROBE_PAUSE_MS = INITIAL_BACKOFF_MS - 10;
/** The longest wait for one condition: a lane that found the server away may pause for half a minute. */
const WAIT_MS = 120_000;
const TEST_MS = 3 * WAIT_MS;

/** A model server that has a gateway, and so a breaker, of its own. */
interface ModelServer {
  readonly model: string;
  server: LocalServer;
  /** What it does now. */
  mood: Answer;
  /** Notes each request and does what it is in the mood for. */
  readonly answer: Answer;
  readonly seenAtMs: number[];
}

/** Most of each story is waiting: all are told at once, each with a server and a batch of its own. */
const STORIES = {
  moment: (one: ModelServer) => takesNoConnections(one, () => isRetried(one)),
  long: (one: ModelServer) => takesNoConnections(one, () => isTakenForAway(one)),
  loading,
  busy,
};
type Name = keyof typeof STORIES;

const servers = {} as Record<Name, ModelServer>;
const told = {} as Record<Name, Promise<void>>;
let stack: TestStack;

const idOf = ({ headers }: Received): string => String(headers['x-request-id']);
const well: Answer = (_, response) =>
  void delay(LATENCY_MS).then(() => response.end('{"model":"m"}'));

async function startModelServer(model: string): Promise<ModelServer> {
  const seenAtMs: number[] = [];
  const one: Omit<ModelServer, 'server'> = {
    ...{ model, seenAtMs, mood: well },
    answer: (request, response, socket) => {
      seenAtMs.push(performance.now());
      one.mood(request, response, socket);
    },
  };
  return Object.assign(one, { server: await startLocalServer(one.answer) });
}

beforeAll(async () => {
  const names = Object.keys(STORIES) as Name[];
  for (const name of names) servers[name] = await startModelServer(name);
  const gateways = names.map((name) => [name, gateway(servers[name].server.url)] as const);
  stack = await startStack({
    config: {
      model_gateways: Object.fromEntries(gateways),
      concurrency: { per_model: LINES_AT_ONCE },
    },
  });
  for (const name of names) {
    told[name] = STORIES[name](servers[name]);
    // Heard of where its test waits for it.
    told[name].catch(() => undefined);
  }
}, STACK_START_MS);
afterAll(async () => {
  await Promise.allSettled(Object.values(told));
  await stack?.stop();
  stack?.remove();
  for (const { server } of Object.values(servers)) await server.close();
}, 60_000);

function gateway(url: string): object {
  return {
    url,
    request_timeout: '10s',
    // Every line has three tries: an outage that counted would use them up within a second.
    max_retries: MAX_RETRIES,
    initial_backoff: `${INITIAL_BACKOFF_MS}ms`,
    max_backoff: '500ms',
  };
}

/** Starts a batch and waits until a quarter of it was sent. */
async function begunBatch({ model, seenAtMs }: ModelServer): Promise<string> {
  const line: TestRequest = { body: { model, messages: [] } };
  const text = inputLines(CHAT.endpoint, Array<TestRequest>(LINES).fill(line));
  const { id } = await createBatch(stack.client, text, CHAT);
  await until(() => seenAtMs.length >= LINES / 4, 30_000, 'a quarter of the batch');
  return id;
}

async function expectWhole(id: string): Promise<void> {
  const { batch, output } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(batch).toMatchObject({
    status: 'completed',
    error_file_id: null,
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  expect(new Set(output.map((line) => line.custom_id)).size).toBe(LINES);
}

describe('a model server that becomes unavailable during a batch', () => {
  it('refuses connections for a moment: no line fails', () => told.moment, TEST_MS);

  it(
    'refuses connections for longer than the breaker waits: no line fails',
    () => told.long,
    TEST_MS,
  );

  it(
    'answers 503 meanwhile: no line fails, and only single probes are sent',
    () => told.loading,
    TEST_MS,
  );

  it('sends Retry-After: no request comes earlier', () => told.busy, TEST_MS);
});

async function takesNoConnections(
  one: ModelServer,
  isNoticed: () => Promise<boolean>,
): Promise<void> {
  const id = await begunBatch(one);
  const { port } = one.server;
  await one.server.close();
  await until(isNoticed, WAIT_MS, `the worker to notice that ${one.model} is away`, 50);
  one.server = await startLocalServer(one.answer, undefined, port);
  await expectWhole(id);
}

/** Whether lines have had as many tries as an outage could cost them. */
async function isRetried({ model }: ModelServer): Promise<boolean> {
  const retries = await metric(`model_request_retries_total{`, model);
  return retries >= MAX_RETRIES * LINES_AT_ONCE;
}

async function isTakenForAway({ model }: ModelServer): Promise<boolean> {
  return (await metric('gateway_breaker_open{', model)) === 1;
}

/** Sum of the worker's values of this metric that name the model. */
async function metric(name: string, model: string): Promise<number> {
  const lines = await stack.metric('worker', name);
  return lines
    .filter((line) => line.includes(`"${model}"`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

async function loading(one: ModelServer): Promise<void> {
  const id = await begunBatch(one);
  one.mood = (_, response) => response.writeHead(503).end('{"error":{"message":"loading"}}');
  // Each worker probes on its own. Without a breaker, hundreds of lines with a backoff of at most half a
  // second leave no such gaps.
  const gapsMs = (from: number): number[] =>
    one.seenAtMs.slice(from).map((atMs, i, all) => atMs - (all[i - PROCESSES] ?? -Infinity));
  const isProbedAlone = (from: number): boolean => Math.min(...gapsMs(from)) >= PROBE_PAUSE_MS;
  await until(() => isProbedAlone(-4 * PROCESSES), WAIT_MS, 'the breaker to open', 5);
  const opened = one.seenAtMs.length - 4 * PROCESSES;
  await until(() => one.seenAtMs.length >= opened + 8 * PROCESSES, 30_000, 'further probes', 5);
  expect(isProbedAlone(opened)).toBe(true);
  one.mood = well;
  await expectWhole(id);
}

/** Each refused line is sent again, and not earlier than the server asked. */
async function busy(one: ModelServer): Promise<void> {
  const id = await begunBatch(one);
  const refusedAtMs = new Map<string, number>();
  const pausesMs: number[] = [];
  const note = (request: Received): void => {
    const refused = refusedAtMs.get(idOf(request));
    if (refused !== undefined) pausesMs.push(performance.now() - refused);
    refusedAtMs.delete(idOf(request));
  };
  one.mood = (request, response) => {
    note(request);
    refusedAtMs.set(idOf(request), performance.now());
    response.writeHead(503, { 'retry-after': '2' }).end('{}');
  };
  // Few are enough: the limit is soon 1, so each takes seconds. Those still refused are noted below.
  await until(() => pausesMs.length >= 5, WAIT_MS, 'lines that came again');
  one.mood = (request, response, socket) => {
    note(request);
    well(request, response, socket);
  };
  await expectWhole(id);
  expect(refusedAtMs.size).toBe(0);
  expect(Math.min(...pausesMs)).toBeGreaterThanOrEqual(1_990);
}
