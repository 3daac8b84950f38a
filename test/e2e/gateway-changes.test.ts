import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Client, Connection } from '@temporalio/client';
import type { LocalServer, Received } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import { createBatch, inputLines, outcomeOf } from './run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack } from '../support/stack';
import { until } from '../support/until';

const LINES = 10;
const STEP_MS = 30_000;
/** A worker counts for 30 s after its last word, and a chunk that came back has waited up to 16 s again. */
const UNROUTED_MS = 90_000;

interface Held {
  readonly model: string;
  readonly response: ServerResponse;
}

let server: LocalServer;
let stack: TestStack;
/** Requests that wait for their answer, of connections that are still there. */
const held = new Set<Held>();
/** Answers that are to be given, by model. */
const credit = new Map<string, number>();

const modelOf = ({ body }: Received) => (JSON.parse(body.toString()) as { model: string }).model;
const gateway = (over: Record<string, unknown> = {}) => ({
  url: server.url,
  request_timeout: '60s',
  max_retries: 3,
  initial_backoff: '100ms',
  max_backoff: '1s',
  ...over,
});

function serve(): void {
  for (const request of held) {
    const left = credit.get(request.model) ?? 0;
    if (left === 0) continue;
    credit.set(request.model, left - 1);
    held.delete(request);
    request.response.end(JSON.stringify({ model: request.model }));
  }
}

beforeAll(async () => {
  server = await startLocalServer((received, response) => {
    const request = { model: modelOf(received), response };
    held.add(request);
    response.on('close', () => held.delete(request));
    serve();
  });
  stack = await startStack({
    config: {
      model_gateways: { a: gateway(), b: gateway() },
      batch: { reroute_after: '2s' },
      concurrency: { per_model: 2 * LINES },
      worker: { drain_budget: '1s', heartbeat_timeout: '3s' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
}, 60_000);

/** The worker comes back with other gateways: SIGTERM, as a deploy does it, or SIGKILL. */
async function reconfigure(
  change: Record<string, unknown>,
  signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM',
): Promise<void> {
  const file = stack.configFile;
  const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  delete config['model_gateways'];
  delete config['global_inference_gateway'];
  writeFileSync(file, JSON.stringify({ ...config, ...change }));
  const before = stack.pidOf('worker');
  process.kill(before, signal);
  const isAnother = () => stack.pidNow('worker') !== before && stack.pidNow('worker');
  await until(isAnother, STEP_MS, 'another worker', 50);
}

/** Lets some requests of a model be answered, which takes a worker that sends them. */
async function answers(model: string, count: number): Promise<void> {
  credit.set(model, count);
  serve();
  await until(() => credit.get(model) === 0, STEP_MS, `answers of ${model}`, 50);
}

async function details(id: string): Promise<string> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const handle = new Client({ connection }).workflow.getHandle(id);
    const metadata = await handle.query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    return metadata.currentDetails ?? '';
  } finally {
    await connection.close();
  }
}

it(
  'goes on through every change of the gateways, wherever a model has one, and loses no line',
  async () => {
    const endpoint = '/v1/chat/completions';
    const requests = Array.from({ length: 2 * LINES }, (_, i) => ({
      body: { model: i % 2 === 0 ? 'a' : 'b', messages: [{ role: 'user', content: `${i}` }] },
    }));
    const { id } = await createBatch(stack.client, inputLines(endpoint, requests), { endpoint });
    await answers('a', 1);
    await answers('b', 1);

    // Split, and in another order: nothing is named after the first of a group.
    await reconfigure({ model_gateways: { b: gateway(), a: gateway({ max_retries: 4 }) } });
    await answers('a', 1);
    await answers('b', 1);

    // The first entry is gone: the other model goes on, this one waits, and the batch says so.
    await reconfigure({ model_gateways: { b: gateway() } });
    await answers('b', 1);
    await until(
      async () => (await details(id)).includes('No worker can send requests of a'),
      UNROUTED_MS,
      'the model without a gateway in the details',
      250,
    );

    // One gateway for all. A worker that was killed hands nothing back: chunks come out of its queues.
    await reconfigure({ global_inference_gateway: gateway() }, 'SIGKILL');
    await answers('a', 1);
    await answers('b', 1);

    // And back, joined, with a model that the batch does not name.
    await reconfigure({ model_gateways: { c: gateway(), a: gateway(), b: gateway() } });
    for (const model of ['a', 'b']) credit.set(model, 100);
    serve();

    const { batch, output, errors } = await outcomeOf(stack.client, id, 60_000);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 2 * LINES } });
    expect(new Set(output.map((line) => line.custom_id)).size).toBe(2 * LINES);
    expect(errors).toEqual([]);
  },
  6 * STEP_MS + UNROUTED_MS,
);
