import type { ServerResponse } from 'node:http';
import type { Received } from '../inference/local-server';
import { until } from '../support/until';
import {
  ask,
  type Backend,
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

afterEach(closeAll);

const BATCH = { 'x-gateway-inference-objective': 'batch' };
const REALTIME = { 'x-gateway-inference-objective': 'realtime' };

const bodiesOf = ({ received }: Backend): string[] =>
  received.filter(({ method }) => method === 'POST').map(({ body }) => body.toString());

it('aborts a batch request whose answer has not begun, if users are shut out and reclaim is on', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE_IN_FLIGHT,
    request_queue_controller: { ...ONE_IN_FLIGHT.request_queue_controller, reclaim: true },
  });
  const batch = ask(gateway, { user: 'batch' }, BATCH);
  await untilHeld(backend, 1);
  const user = ask(gateway, { user: 'user' });
  const evicted = await batch.answer;
  expect([evicted.status, evicted.headers['x-nightshift-dropped']]).toEqual([503, 'evicted']);
  await untilHeld(backend, 2);
  // The first one was aborted at the backend.
  await until(() => backend.held[0]?.response.destroyed === true, 5_000, 'an aborted request', 2);
  backend.held.shift();
  backend.respond();
  expect((await user.answer).status).toBe(200);
});

it('answers 504 if a backend does not answer in time, and does not call that a drop', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {}, { request_timeout: '100ms' });
  const answer = await ask(gateway).answer;
  expect([answer.status, answer.json().error?.code]).toEqual([504, 'backend_timeout']);
  expect(answer.headers['x-nightshift-dropped']).toBeUndefined();
});

it('sends no batches to an engine that says it is busy, and users as before', async () => {
  const load = { waiting: 6 };
  const held: ServerResponse[] = [];
  const backend = await startBackend(({ url }: Received, response) => {
    const series = [`vllm:num_requests_waiting ${load.waiting}`, 'vllm:kv_cache_usage_perc 0.2'];
    if (url === '/metrics') response.end(`${series.join('\n')}\n`);
    else held.push(response);
  });
  const probe = { interval: '30ms', metrics: true };
  const gateway = await startGateway([backend], {}, { probe });
  const state = async () => (await gateway.flow()).backends[0];
  await until(async () => (await state())?.state === 'busy', 5_000, 'a busy backend', 5);
  expect((await state())?.reason).toBe('6 requests wait in it, KV cache 20 %');
  ask(gateway, {}, BATCH);
  await untilQueued(gateway, 1);
  ask(gateway);
  await until(() => held.length === 1, 5_000, 'a request of a user', 2);
  load.waiting = 5;
  await until(() => held.length === 2, 5_000, 'a request of a batch', 2);
});

it('sends the next turn of a conversation to the backend that has its beginning', async () => {
  const answer = (_request: unknown, response: ServerResponse) => void response.end('{}');
  const backends = [
    await startBackend(answer),
    await startBackend(answer),
    await startBackend(answer),
  ];
  const gateway = await startGateway(backends);
  const turns = (topic: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      role: 'user',
      content: `conversation ${topic}, turn ${i}: ${`word-${topic} `.repeat(100)}`,
    }));
  for (const count of [1, 2, 3]) {
    for (let topic = 0; topic < 8; topic++) {
      await ask(gateway, { messages: turns(topic, count) }).answer;
    }
  }
  const topics = backends.map((backend) => {
    const found = bodiesOf(backend).map((body) => /conversation (\d+)/.exec(body)?.[1]);
    return [...new Set(found)];
  });
  // Each conversation has one backend, and not all have the same one.
  expect(topics.flat().sort()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
  expect(topics.filter(({ length }) => length > 0).length).toBeGreaterThan(1);
});

it('answers contention with 429 while a backend is ready, if the policy says so', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE_IN_FLIGHT,
    status_policy: 'contended',
    fair_request_queue: { flow_capacity: 1, no_backend_ttl: '50ms' },
  });
  ask(gateway);
  await untilHeld(backend, 1);
  ask(gateway);
  await untilQueued(gateway, 1);
  const full = await ask(gateway).answer;
  expect([full.status, full.json().error]).toEqual([
    429,
    expect.objectContaining({ code: 'insufficient_flow_capacity', type: 'requests' }),
  ]);
  expect(full.headers['x-nightshift-dropped']).toBe('insufficient_flow_capacity');
  backend.health = 503;
  const isAway = async () => (await gateway.flow()).backends[0]?.state === 'not_ready';
  await until(isAway, 5_000, 'a backend that is away', 5);
  expect((await ask(gateway, {}, REALTIME).answer).status).toBe(503);
});

it('lets critical requests wait and refuses others, with enqueue: critical', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE_IN_FLIGHT,
    fair_request_queue: { enqueue: 'critical' },
  });
  ask(gateway);
  await untilHeld(backend, 1);
  const critical = ask(gateway, {}, REALTIME);
  await untilQueued(gateway, 1);
  for (const headers of [{}, BATCH]) {
    const answer = await ask(gateway, {}, headers).answer;
    expect([answer.status, answer.headers['x-nightshift-dropped']]).toEqual([503, 'not_critical']);
  }
  backend.respond();
  await untilHeld(backend, 1);
  backend.respond();
  expect((await critical.answer).status).toBe(200);
});

it('wants the tenant header once, unless it may be missing', async () => {
  const backend = await startBackend((_request, response) => void response.end('{}'));
  const name = 'x-team';
  const strict = await startGateway([backend], { auth: { mode: 'header', tenant_header: name } });
  expect((await ask(strict).answer).status).toBe(401);
  expect((await ask(strict, {}, { [name]: '' }).answer).status).toBe(401);
  expect((await ask(strict, {}, { [name]: 'acme' }).answer).status).toBe(200);
  const loose = await startGateway([backend], {
    auth: { mode: 'header', tenant_header: name, require_tenant: false },
  });
  expect((await ask(loose).answer).status).toBe(200);
});
