import { createConnection, type Socket } from 'node:net';
import { closeBareServers, connect } from '../support/bare-server';
import { collectGarbage } from '../support/collect-garbage';
import { until } from '../support/until';
import {
  ask,
  type Backend,
  closeAll,
  type Exchange,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  type TestGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

afterEach(closeBareServers);
afterEach(closeAll);

const as = (tenant: string, objective?: string): Record<string, string> => ({
  'x-maas-username': tenant,
  ...(objective === undefined ? {} : { 'x-gateway-inference-objective': objective }),
});
/** The codes of answers of the gateway, each with how often it came. */
async function codesOf(exchanges: readonly Exchange[]): Promise<Record<string, number>> {
  const codes: Record<string, number> = {};
  for (const { answer } of exchanges) {
    const code = (await answer).json().error?.code ?? 'none';
    codes[code] = (codes[code] ?? 0) + 1;
  }
  return codes;
}
/** Answers whatever the backend holds until these have their answers; who was served, in order. */
async function serveAll(backend: Backend, count: number): Promise<string[]> {
  const order: string[] = [];
  while (order.length < count) {
    await until(() => backend.held.length > 0, 5_000, `request ${order.length}`, 1);
    order.push(String(backend.held[0]?.headers['x-maas-username']));
    backend.respond();
  }
  return order;
}

describe('thousands of clients that wait and hang up', () => {
  const WAITERS = 1_500;
  const BODY = JSON.stringify({ model: 'm', messages: ['x'.repeat(4_000)] });
  const HEAD = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}`;
  const BYTES = `POST /v1/chat/completions HTTP/1.1\r\n${HEAD}\r\n\r\n${BODY}`;

  async function comeAndGo(gateway: TestGateway, count: number): Promise<void> {
    const port = Number(new URL(gateway.url).port);
    const queued = async () => (await gateway.flow()).queued.standard;
    const sockets: Socket[] = [];
    // Fewer at a time than the server's backlog of connections.
    while (sockets.length < count) {
      sockets.push(...Array.from({ length: 250 }, () => createConnection(port, '127.0.0.1')));
      for (const socket of sockets.slice(-250)) socket.write(BYTES);
      await until(async () => (await queued()) === sockets.length, 20_000, 'waiters', 2);
    }
    for (const socket of sockets) socket.destroy();
    await until(async () => (await queued()) === 0, 10_000, 'an empty queue', 5);
  }

  it('leave nothing behind', async () => {
    const backend = await startBackend();
    const capacity = { total_capacity: WAITERS + 1, flow_capacity: WAITERS + 1 };
    const settings = { ...ONE_IN_FLIGHT, fair_request_queue: capacity };
    const gateway = await startGateway([backend], settings);
    const running = ask(gateway);
    await untilHeld(backend, 1);
    await comeAndGo(gateway, WAITERS / 10);
    const before = memory();
    await comeAndGo(gateway, WAITERS);
    // Their bodies alone have 6 MB. The last connections close a little later.
    await until(() => memory() < before + 3, 5_000, 'free memory', 100);
    expect((await gateway.flow()).queued_bytes).toBe(0);
    running.hangUp();
    await until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'no stock', 5);
    const posts = backend.received.filter(({ method }) => method === 'POST');
    expect(posts).toHaveLength(1);
  }, 60_000);
});

/** Memory of this process after garbage collection, MB. */
function memory(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1_000_000;
}

it('gives the place of a client that reads nothing to the next one', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], ONE_IN_FLIGHT, { stall_timeout: '400ms' });
  const body = JSON.stringify({ model: 'm' });
  const head = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
  const port = Number(new URL(gateway.url).port);
  const idle = connect(port, `POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n${body}`);
  idle.socket.pause();
  await untilHeld(backend, 1);
  const next = ask(gateway);
  await untilQueued(gateway, 1);
  // More than the sockets on the way can hold.
  backend.respond('x'.repeat(32_000_000));
  await untilHeld(backend, 1);
  backend.respond();
  expect((await next.answer).status).toBe(200);
});

it('lets no tenant crowd out another one', async () => {
  const backend = await startBackend();
  const settings = { ...ONE_IN_FLIGHT, auth: { mode: 'header' } };
  const unit = { unit_cost: true, flow_capacity: 50, total_capacity: 200 };
  const gateway = await startGateway([backend], { ...settings, fair_request_queue: unit });
  ask(gateway, {}, as('flood'));
  await untilHeld(backend, 1);
  const flood = Array.from({ length: 50 }, () => ask(gateway, {}, as('flood')));
  await untilQueued(gateway, 50);
  const beyond = Array.from({ length: 30 }, () => ask(gateway, {}, as('flood')));
  expect(await codesOf(beyond)).toEqual({ insufficient_flow_capacity: 30 });
  const others = Array.from({ length: 5 }, () => ask(gateway, {}, as('other')));
  await untilQueued(gateway, 55);
  const order = await serveAll(backend, 56);
  // They take turns, although 50 requests came earlier.
  expect(order.slice(0, 12).filter((tenant) => tenant === 'other')).toHaveLength(5);
  for (const { answer } of [...flood, ...others]) expect((await answer).status).toBe(200);
});

it('gives batches up for a flood of critical requests, and each of its flows has its places', async () => {
  const critical = ['a', 'b', 'c', 'd', 'e'];
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...{ ...ONE_IN_FLIGHT, auth: { mode: 'header' } },
    tenants: Object.fromEntries(critical.map((tenant) => [tenant, { max_band: 'critical' }])),
    fair_request_queue: { total_capacity: 40, flow_capacity: 10 },
  });
  ask(gateway, {}, as('user'));
  await untilHeld(backend, 1);
  const users = Array.from({ length: 4 }, () => ask(gateway, {}, as('user')));
  const lines = Array.from({ length: 36 }, () => ask(gateway, {}, as('batch', 'batch')));
  await untilQueued(gateway, 40);
  const flow = (tenant: string) =>
    Array.from({ length: 10 }, () => ask(gateway, {}, as(tenant, 'realtime')));
  const queuedNow = async () => (await gateway.flow()).queued;
  const first = flow('a');
  await until(async () => (await queuedNow()).critical === 10, 5_000, 'critical requests', 5);
  expect(await queuedNow()).toEqual({ critical: 10, standard: 4, sheddable: 26 });
  expect(await codesOf([ask(gateway, {}, as('a', 'realtime'))])).toEqual({
    insufficient_flow_capacity: 1,
  });
  const others = critical.slice(1, 4).flatMap(flow);
  await until(async () => (await queuedNow()).critical === 40, 5_000, 'a full queue', 5);
  expect(await codesOf([...lines, ...users])).toEqual({ evicted: 40 });
  expect(await codesOf(flow('e'))).toEqual({ too_many_flows: 10 });
  await serveAll(backend, 41);
  for (const { answer } of [...first, ...others]) expect((await answer).status).toBe(200);
});
