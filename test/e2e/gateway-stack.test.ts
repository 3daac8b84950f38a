import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { loadConfig } from '../../platform/config';
import { packageRoot } from '../../platform/package-root';
import { STACK_START_MS, chatLines, startStack, submit, type TestStack } from '../support/stack';
import { until } from '../support/until';
import { outcomeOf } from './run-batch';

/** `nightshift dev` without settings: the worker sends through a gateway, which users call as well. */
let stack: TestStack;
let users: OpenAI;

const WAIT_MS = 60_000;
/** Some seconds of work for the simulator. */
const LINES = 600;
const CALL = { model: 'm', messages: [{ role: 'user' as const, content: 'hello' }] };

beforeAll(async () => {
  stack = await startStack({ simulator: true });
  users = new OpenAI({ baseURL: stack.gatewayUrl ?? '', apiKey: 'unused', maxRetries: 5 });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
}, WAIT_MS);

/** A page of the simulator. */
async function simulator(page: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const { gateway } = loadConfig({ file: stack.configFile, env: {} });
  const url = gateway.pools['simulator']?.backends[0]?.url;
  const response = await fetch(`${url}/simulator/${page}`, init);
  return (await response.json()) as Record<string, unknown>;
}

async function setSimulator(settings: object): Promise<void> {
  await simulator('config', { method: 'PUT', body: JSON.stringify(settings) });
}

/** Starts a batch and waits until a tenth of it is answered. */
async function begunBatch(): Promise<string> {
  const { id } = await submit(stack.client, chatLines(LINES));
  await until(async () => (await answered(id)) > LINES / 10, WAIT_MS, 'the first answers');
  return id;
}

async function answered(id: string): Promise<number> {
  return (await stack.client.batches.retrieve(id)).request_counts?.completed ?? 0;
}

async function expectEveryLineOnce(id: string): Promise<void> {
  const { batch, output, errors } = await outcomeOf(stack.client, id, WAIT_MS);
  expect(batch.status).toBe('completed');
  expect(errors).toEqual([]);
  const ids = output.map(({ custom_id }) => custom_id);
  expect(ids).toEqual(Array.from({ length: LINES }, (_, i) => `c-${i}`));
}

it(
  'answers a user while a batch runs, both through the gateway',
  async () => {
    const id = await begunBatch();
    const { data: stream, response } = await users.chat.completions
      .create({ ...CALL, stream: true })
      .withResponse();
    let words = 0;
    for await (const { choices } of stream) words += choices[0]?.delta.content ? 1 : 0;
    expect(await answered(id)).toBeLessThan(LINES);
    expect(words).toBe(16);
    // The gateway adds the time in its queue to each answer.
    expect(response.headers.get('server-timing')).toMatch(/^queue;dur=/);
    await expectEveryLineOnce(id);
    const dispatched = await stack.metric('gateway', 'gateway_dispatched_total');
    const count = (band: string) =>
      dispatched
        .filter((line) => line.includes(`band="${band}"`))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    expect([count('standard'), count('sheddable')]).toEqual([1, LINES]);
  },
  2 * WAIT_MS,
);

it(
  'passes on the first word before the next ones exist, and ends a request whose user goes away',
  async () => {
    await setSimulator({ slowdown: 30 });
    const stream = await users.chat.completions.create({ ...CALL, stream: true });
    // The whole answer takes four seconds. The simulator sees the end only while it still works on it.
    for await (const { choices } of stream) if (choices[0]?.delta.content) break;
    stream.controller.abort();
    await until(async () => (await simulator('stats'))['aborted'] === 1, 3_000, 'the end', 10);
    await setSimulator({ slowdown: 1 });
  },
  WAIT_MS,
);

it(
  'runs the example of an interactive call',
  async () => {
    const env = { ...process.env, OPENAI_BASE_URL: stack.gatewayUrl ?? '' };
    const example = path.join(packageRoot(), 'examples', 'interactive.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [example], { env });
    expect(stdout.trim().split(' ')).toHaveLength(16);
  },
  WAIT_MS,
);

it(
  'starts a killed gateway again at its address, and the batch loses no line',
  async () => {
    const id = await begunBatch();
    const killed = stack.pidOf('gateway');
    process.kill(killed, 'SIGKILL');
    await until(
      () => ![null, killed].includes(stack.pidNow('gateway')),
      WAIT_MS,
      'another gateway',
      10,
    );
    const answer = await users.chat.completions.create(CALL);
    expect(answer.choices[0]?.message.content).not.toBe('');
    await expectEveryLineOnce(id);
  },
  2 * WAIT_MS,
);
