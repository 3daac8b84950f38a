import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Client, Connection } from '@temporalio/client';
import { Client as Postgres } from 'pg';
import type { LocalServer, Received } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import { ageRoutes } from '../support/aged-rows';
import { createBatch, inputLines, outcomeOf } from './run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack } from '../support/stack';
import { until } from '../support/until';

const LINES = 10;
const STEP_MS = 30_000;
/** A returned chunk waits up to 16 s before it is handed out again. */
const UNROUTED_MS = 90_000;

interface Held {
  readonly model: string;
  readonly response: ServerResponse;
}

let server: LocalServer;
let stack: TestStack;
/** Requests that wait for their answer on open connections. */
const held = new Set<Held>();
/** How many answers may be given, by model. */
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

/** Restarts every worker with other gateways: by SIGTERM, as a deploy does, or by SIGKILL. */
async function reconfigure(
  change: Record<string, unknown>,
  signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM',
): Promise<void> {
  const file = stack.configFile;
  const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  delete config['model_gateways'];
  delete config['global_inference_gateway'];
  writeFileSync(file, JSON.stringify({ ...config, ...change }));
  const before = stack.pidsOf('worker');
  for (const pid of before) process.kill(pid, signal);
  const areOthers = () => {
    const now = stack.pidsOf('worker');
    return now.length === before.length && now.every((pid) => !before.includes(pid));
  };
  await until(areOthers, STEP_MS, 'other workers', 50);
}

/** Lets some requests of a model be answered, which needs a worker that sends them. */
async function answers(model: string, count: number): Promise<void> {
  credit.set(model, count);
  serve();
  await until(() => credit.get(model) === 0, STEP_MS, `answers of ${model}`, 50);
}

/** Ends the 30 s in which a worker that is gone counts as live. */
async function forgetGoneWorkers(): Promise<void> {
  const { postgres } = JSON.parse(readFileSync(stack.configFile, 'utf8')) as {
    postgres: { url: string };
  };
  const client = new Postgres({ connectionString: postgres.url });
  await client.connect();
  await ageRoutes(client);
  await client.end();
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
  'a batch goes on through every change of gateways while its models have one, and loses no line',
  async () => {
    const endpoint = '/v1/chat/completions';
    const requests = Array.from({ length: 2 * LINES }, (_, i) => ({
      body: { model: i % 2 === 0 ? 'a' : 'b', messages: [{ role: 'user', content: `${i}` }] },
    }));
    const { id } = await createBatch(stack.client, inputLines(endpoint, requests), { endpoint });
    await answers('a', 1);
    await answers('b', 1);

    // Other settings in another order.
    await reconfigure({ model_gateways: { b: gateway(), a: gateway({ max_retries: 4 }) } });
    await answers('a', 1);
    await answers('b', 1);

    // The first gateway is removed: its model waits, the other one goes on, and the batch reports it.
    await reconfigure({ model_gateways: { b: gateway() } });
    await answers('b', 1);
    await forgetGoneWorkers();
    await until(
      async () => (await details(id)).includes('No worker can send requests of a'),
      UNROUTED_MS,
      'the model without a gateway in the details',
      250,
    );

    // One gateway for all models. A killed worker returns no chunks, so they are taken from its queues.
    await reconfigure({ global_inference_gateway: gateway() }, 'SIGKILL');
    await answers('a', 1);
    await answers('b', 1);

    // Both gateways again, and one of a model that the batch does not name.
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
