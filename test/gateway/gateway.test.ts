import {
  ANSWER,
  ask,
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';
import { until } from '../support/until';

afterEach(closeAll);

it('passes the exact bytes of a request and its answer', async () => {
  const backend = await startBackend((_request, response) => {
    response.writeHead(201, { 'content-type': 'application/json', 'x-own': 'kept' });
    response.end('{"a" :  1}');
  });
  const gateway = await startGateway([backend]);
  const body = Buffer.from('{ "messages":[],  "model":"m", "a":"\\u00e4" }');
  const answer = await ask(gateway, body, { 'x-request-id': 'mine-1' }).answer;
  expect(answer).toMatchObject({
    status: 201,
    text: '{"a" :  1}',
    headers: { 'x-own': 'kept', 'x-request-id': 'mine-1', 'server-timing': 'queue;dur=0' },
  });
  const [received] = backend.received.filter(({ method }) => method === 'POST');
  expect(received?.body.equals(body)).toBe(true);
  expect(received?.headers['x-request-id']).toBe('mine-1');
});

it('sends each event of a stream as soon as the backend sends it', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend]);
  const exchange = ask(gateway, { stream: true });
  await untilHeld(backend, 1);
  const { response } = backend.held[0]!;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    response.write(event);
    await until(() => exchange.chunks.includes(event), 5_000, event, 2);
  }
  response.end('data: [DONE]\n\n');
  expect((await exchange.answer).text).toBe('data: 1\n\ndata: 2\n\ndata: [DONE]\n\n');
  await until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'an empty stock');
});

it('holds requests beyond the bound and sends them by the weights of their tenants', async () => {
  const backend = await startBackend();
  const settings = {
    ...ONE_IN_FLIGHT,
    auth: { mode: 'header' },
    fairness: { default: 2, tenants: { big: 6 } },
  };
  const unit = { fair_request_queue: { unit_cost: true } };
  const gateway = await startGateway([backend], { ...settings, ...unit });
  ask(gateway, { user: 'first' }, { 'x-maas-username': 'other' });
  await untilHeld(backend, 1);
  for (let i = 0; i < 8; i++) {
    ask(gateway, { user: 'small' }, { 'x-maas-username': 'small' });
    await untilQueued(gateway, 2 * i + 1);
    ask(gateway, { user: 'big' }, { 'x-maas-username': 'big' });
    await untilQueued(gateway, 2 * i + 2);
  }
  const order: string[] = [];
  for (let i = 0; i < 9; i++) {
    await untilHeld(backend, 1);
    order.push((JSON.parse(backend.held[0]!.body.toString()) as { user: string }).user);
    backend.respond();
  }
  expect(order.slice(1).filter((user) => user === 'big')).toHaveLength(6);
  expect(order.slice(1).filter((user) => user === 'small')).toHaveLength(2);
});

it('answers 503 with the code when a request has waited for its time to live', async () => {
  const backend = await startBackend();
  const queue = { fair_request_queue: { queue_ttl: '150ms' } };
  const gateway = await startGateway([backend], { ...ONE_IN_FLIGHT, ...queue });
  const served = ask(gateway);
  await untilHeld(backend, 1);
  const answer = await ask(gateway).answer;
  expect(answer.status).toBe(503);
  expect(answer.headers).toMatchObject({
    'x-nightshift-dropped': 'queue_ttl_expired',
    'x-llm-d-request-dropped-reason': 'rejected-saturated',
  });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  expect(answer.json().error).toMatchObject({ code: 'queue_ttl_expired', type: 'server_error' });
  backend.respond();
  expect((await served.answer).json()).toEqual(ANSWER);
});

it('answers 504 when the deadline of the client passes while it waits', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], ONE_IN_FLIGHT);
  ask(gateway);
  await untilHeld(backend, 1);
  const answer = await ask(gateway, {}, { 'x-slo-ttft-ms': '100' }).answer;
  expect(answer.status).toBe(504);
  expect(answer.headers['x-nightshift-dropped']).toBe('deadline_exceeded');
  expect(answer.headers['x-llm-d-request-dropped-reason']).toBe('rejected-ttl-expired');
});

it('forgets clients that hang up, waiting or in flight, and frees their places', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], ONE_IN_FLIGHT);
  const running = ask(gateway);
  await untilHeld(backend, 1);
  const waiting = Array.from({ length: 50 }, () => ask(gateway));
  await untilQueued(gateway, 50);
  waiting.forEach((exchange) => exchange.hangUp());
  await untilQueued(gateway, 0);
  expect((await gateway.flow()).queued_bytes).toBe(0);
  running.hangUp();
  await until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'an empty stock');
  expect(backend.received.filter(({ method }) => method === 'POST')).toHaveLength(1);
  const dropped = 'gateway_dropped_total{band="standard",code="client_closed",process="gateway"}';
  expect(await gateway.metric(dropped)).toBe(51);
});

it('tries another backend if one refuses, and passes on the last refusal', async () => {
  const refuse = (status: number) =>
    startBackend((_request, response) =>
      response.writeHead(status, { 'retry-after': '1' }).end('no'),
    );
  const backends = [await refuse(429), await refuse(503)];
  const gateway = await startGateway(backends, {
    request_queue_controller: { watermark_per_backend: 8 },
  });
  const answer = await ask(gateway).answer;
  const posts = backends.map(({ received }) => received.filter(({ method }) => method === 'POST'));
  expect(posts.map(({ length }) => length)).toEqual([1, 1]);
  expect([429, 503]).toContain(answer.status);
  expect(answer.text).toBe('no');
  expect(answer.headers['x-nightshift-dropped']).toBeUndefined();
});

it('answers 502 if the backend breaks the connection before its answer', async () => {
  const backend = await startBackend((_request, response) => void response.destroy());
  const gateway = await startGateway([backend]);
  const answer = await ask(gateway).answer;
  expect(answer.status).toBe(502);
  expect(answer.json().error?.code).toBe('backend_lost');
  expect(answer.headers['x-nightshift-dropped']).toBeUndefined();
});

it('drops requests that no backend was ready for', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    fair_request_queue: { no_backend_ttl: '150ms' },
  });
  backend.health = 503;
  const isAway = async () => !(await gateway.flow()).backends[0]!.ready;
  await until(isAway, 5_000, 'a backend that is not ready');
  expect((await fetch(`${gateway.adminUrl}/ready`)).status).toBe(503);
  const answer = await ask(gateway).answer;
  expect(answer.headers['x-nightshift-dropped']).toBe('no_backends');
  expect(answer.headers['x-llm-d-request-dropped-reason']).toBe('rejected-no-endpoints');
});

it.each([
  ['no JSON', Buffer.from('{'), 400, null],
  ['no object', Buffer.from('[1]'), 400, null],
  ['no model', Buffer.from('{"messages":[]}'), 400, null],
  ['an unknown model', Buffer.from('{"model":"x"}'), 404, 'model_not_found'],
])('refuses a body with %s in the error envelope', async (_name, body, status, code) => {
  const backend = await startBackend();
  const gateway = await startGateway([backend]);
  const answer = await ask(gateway, body).answer;
  expect(answer.status).toBe(status);
  expect(answer.json().error).toMatchObject({ type: 'invalid_request_error', code });
  expect(answer.headers['x-nightshift-dropped']).toBeUndefined();
});

it('lets waiting and running requests end when it stops, then drops what still waits', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], { ...ONE_IN_FLIGHT, drain_budget: '400ms' });
  const running = ask(gateway);
  await untilHeld(backend, 1);
  const next = ask(gateway);
  await untilQueued(gateway, 1);
  const left = ask(gateway);
  await untilQueued(gateway, 2);
  const closed = gateway.close();
  await until(
    async () => (await fetch(`${gateway.adminUrl}/ready`)).status === 503,
    5_000,
    'a drain',
  );
  backend.respond();
  expect((await running.answer).status).toBe(200);
  await untilHeld(backend, 1);
  expect((await left.answer).headers).toMatchObject({
    'x-nightshift-dropped': 'shutting_down',
    // Not the time that its queue would take, which ends with this process.
    'retry-after': '1',
  });
  await expect(next.answer).rejects.toThrow();
  await closed;
});
