import type { ServerResponse } from 'node:http';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import {
  ask,
  type Backend,
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  type TestGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

afterEach(closeAll);

const untilReady = (gateway: TestGateway, ready: boolean): Promise<unknown> =>
  until(
    async () => (await gateway.flow()).backends.every((backend) => backend.ready === ready),
    5_000,
    `ready: ${ready}`,
    5,
  );
const untilIdle = (gateway: TestGateway): Promise<unknown> =>
  until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'an empty stock', 5);
const posts = ({ received }: Backend): number =>
  received.filter(({ method }) => method === 'POST').length;
const beginStream = (response: ServerResponse | undefined): void => {
  response?.writeHead(200, { 'content-type': 'text/event-stream' });
  response?.write('data: 1\n\n');
};

it('cuts a stream whose backend dies, so that it does not look complete', async () => {
  const dying = await startBackend();
  const gateway = await startGateway([dying]);
  const exchange = ask(gateway, { stream: true });
  await untilHeld(dying, 1);
  beginStream(dying.held[0]?.response);
  await until(() => exchange.chunks.length === 1, 5_000, 'an event', 2);
  await dying.close();
  await expect(exchange.answer).rejects.toThrow('aborted');
  await untilIdle(gateway);
});

it('keeps requests waiting while their only backend restarts, and serves them when it is back', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], ONE_IN_FLIGHT);
  const running = ask(gateway);
  await untilHeld(backend, 1);
  const waiting = Array.from({ length: 30 }, () => ask(gateway));
  await untilQueued(gateway, 30);
  await backend.close();
  expect((await running.answer).json().error?.code).toBe('backend_lost');
  await untilReady(gateway, false);
  // The request that was next found out that nothing listens.
  await untilQueued(gateway, 29);
  await startBackend((_request, response) => void response.end('{}'), backend.port);
  const answers = await Promise.all(waiting.map(({ answer }) => answer));
  const failed = answers.filter(({ status }) => status !== 200);
  expect(
    failed.map(({ headers }) => [headers['x-nightshift-dropped'], headers['retry-after']]),
  ).toEqual([['backend_unreachable', '1']]);
});

it('sends requests of a dead backend to the others, and none to it until it is back', async () => {
  const answer = (_request: unknown, response: ServerResponse) => void response.end('{}');
  const [dying, other] = [await startBackend(answer), await startBackend(answer)];
  const gateway = await startGateway([dying, other]);
  await dying.close();
  for (let i = 0; i < 20; i++) expect((await ask(gateway).answer).status).toBe(200);
  expect(posts(other)).toBe(20);
  const back = await startBackend(answer, dying.port);
  await untilReady(gateway, true);
  for (let i = 0; i < 20; i++) expect((await ask(gateway).answer).status).toBe(200);
  expect(posts(back)).toBeGreaterThan(0);
});

it('serves a backend that was never there when it comes', async () => {
  const port = await freePort();
  const gateway = await startGateway([{ url: `http://127.0.0.1:${port}` }]);
  expect((await fetch(`${gateway.adminUrl}/ready`)).status).toBe(503);
  const waiting = ask(gateway);
  await untilQueued(gateway, 1);
  await startBackend((_request, response) => void response.end('{}'), port);
  expect((await waiting.answer).status).toBe(200);
  expect((await fetch(`${gateway.adminUrl}/ready`)).status).toBe(200);
});

it('keeps a backend whose probe hangs as long as it answers calls, and no longer', async () => {
  const backend = await startBackend((_request, response) => void response.end('{}'));
  // A real answer counts for two intervals, longer than this process may pause between two calls.
  const probe = { interval: '700ms', timeout: '50ms' };
  const gateway = await startGateway([backend], {}, { probe });
  backend.health = 0;
  const before = backend.received.length;
  const probes = () => backend.received.slice(before).filter(({ method }) => method === 'GET');
  while (probes().length < 3) {
    expect((await ask(gateway).answer).status).toBe(200);
    expect((await gateway.flow()).backends[0]?.ready).toBe(true);
  }
  await untilReady(gateway, false);
});

it('gives up a backend whose probe fails, although it answers calls', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend]);
  const running = ask(gateway);
  await untilHeld(backend, 1);
  backend.health = 500;
  await untilReady(gateway, false);
  backend.respond();
  expect((await running.answer).status).toBe(200);
  ask(gateway);
  await untilQueued(gateway, 1);
  expect(posts(backend)).toBe(1);
});

it('asks clients to come back soon when all backends are away for longer than requests wait', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    fair_request_queue: { no_backend_ttl: '300ms' },
  });
  await backend.close();
  await untilReady(gateway, false);
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(gateway).answer));
  for (const { headers, status } of answers) {
    expect([status, headers['x-nightshift-dropped']]).toEqual([503, 'no_backends']);
    // The queue holds them anyway: a long pause would only keep them away after the return.
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(5);
  }
  await startBackend((_request, response) => void response.end('{}'), backend.port);
  await untilReady(gateway, true);
  expect((await ask(gateway).answer).status).toBe(200);
});
