import { writeFileSync } from 'node:fs';
import { until } from '../../support/until';
import {
  type Asked,
  closeOutside,
  dropped,
  ONE_AT_A_TIME,
  Outside,
  poolOf,
  refusal,
  ScriptedBackend,
} from './outside';

afterAll(closeOutside);

const start = async (settings: object = {}, fair_request_queue: object = {}) => {
  const backend = await ScriptedBackend.start();
  const pools = poolOf('m', [backend], { ...ONE_AT_A_TIME, fair_request_queue });
  return { backend, gateway: await Outside.start({ gateway: { pools, ...settings } }) };
};
const names = (count: number, letter = 'r') =>
  Array.from({ length: count }, (_, i) => `${letter}${i}`);

describe('SIGTERM', () => {
  it('lets running and waiting requests end, refuses new ones, and ends the process with 0', async () => {
    const { backend, gateway } = await start();
    const first = gateway.ask('m', 'first');
    await backend.holds(1);
    const waiting = await gateway.queue(
      'm',
      ['a', 'b'].map((name) => () => gateway.ask('m', name)),
    );
    gateway.signal('SIGTERM');
    const isNotReady = async () => (await fetch(`${gateway.adminUrl}/ready`)).status === 503;
    await until(isNotReady, 5_000, 'the gateway not to be ready', 2);
    const refused = gateway.ask('m', 'late').answer;
    await expect(refused).rejects.toThrow(/ECONNREFUSED/);
    // The observability port still answers.
    await gateway.has('m', 1, 2);
    expect(await backend.serveOneByOne(2)).toEqual(['a', 'b']);
    backend.respond();
    for (const asked of [first, ...waiting]) expect((await asked.answer).status).toBe(200);
    expect(await gateway.ended()).toBe(0);
    expect(backend.came).toEqual(['first', 'a', 'b']);
  });

  it('drops what still waits when the drain budget ends, and cuts what still runs', async () => {
    const { backend, gateway } = await start({ drain_budget: '300ms' });
    const running = gateway.ask('m', 'running');
    await backend.holds(1);
    const [waits] = await gateway.queue('m', [() => gateway.ask('m', 'waits')]);
    gateway.signal('SIGTERM');
    expect(await refusal(waits!)).toEqual(dropped('shutting_down', 'rejected-shutting-down'));
    expect((await waits!.answer).headers['retry-after']).toBe('1');
    await expect(running.answer).rejects.toThrow();
    await gateway.ended();
    await until(() => backend.aborted.includes('running'), 5_000, 'the end at the backend', 2);
    expect(backend.came).toEqual(['running']);
  });
});

it('kill -9 ends every connection, at clients and backends, and sends nothing twice', async () => {
  const { backend, gateway } = await start();
  const running = gateway.ask('m', 'running');
  await backend.holds(1);
  const [waits] = await gateway.queue('m', [() => gateway.ask('m', 'waits')]);
  expect(await gateway.kill('SIGKILL')).toBe('SIGKILL');
  for (const asked of [running, waits!]) await expect(asked.answer).rejects.toThrow();
  await until(() => backend.aborted.includes('running'), 5_000, 'the end at the backend', 2);
  expect(backend.came).toEqual(['running']);
});

describe('a flood', () => {
  let backend: ScriptedBackend;
  let gateway: Outside;
  beforeAll(async () => {
    ({ backend, gateway } = await start({}, { total_capacity: 100, flow_capacity: 100 }));
  }, 60_000);

  it('of 500 requests fills the queue exactly, and each one gets one answer', async () => {
    const asked = names(500).map((name) => gateway.ask('m', name));
    await gateway.has('m', 1, 100);
    const statuses: number[] = [];
    for (const one of asked) void one.answer.then(({ status }) => statuses.push(status));
    await until(() => statuses.length === 399, 10_000, 'refusals', 2);
    expect(statuses.every((status) => status === 503)).toBe(true);
    await backend.drain(() => statuses.length === 500);
    expect(statuses.filter((status) => status === 200)).toHaveLength(101);
    expect(new Set(backend.came).size).toBe(101);
    expect(backend.came).toHaveLength(101);
    const metrics = await gateway.metrics();
    expect(
      metrics[
        'queue_push_errors{model="m",targetModel="m",error_type="ErrInsufficientFlowCapacity"}'
      ],
    ).toBe(399);
    expect(
      metrics['gateway_dropped_total{band="standard",code="insufficient_flow_capacity"}'],
    ).toBe(399);
  });

  it('of clients that hang up leaves nothing behind', async () => {
    const before = backend.came.length;
    const asked: Asked[] = names(100, 'h').map((name) => gateway.ask('m', name));
    await gateway.has('m', 1, 99);
    for (const one of asked) one.hangUp();
    await gateway.has('m', 0, 0);
    const { queued_cost, queued_bytes, active_flows, stock } = await gateway.pool('m');
    expect({ queued_cost, queued_bytes, active_flows, stock }).toEqual({
      ...{ queued_cost: 0, queued_bytes: 0, active_flows: 0 },
      stock: { requests: 0, cost: 0 },
    });
    expect(backend.came.length - before).toBeLessThanOrEqual(100);
    gateway.ask('m', 'afterwards');
    await until(() => backend.came.at(-1) === 'afterwards', 5_000, 'the next request', 2);
    backend.respond('afterwards');
  });

  it('meets the settings of the start, whatever is written into their file', async () => {
    writeFileSync(gateway.configFile, 'gateway: { pools: {} }\n');
    const asked = gateway.ask('m', 'same-settings');
    await until(() => backend.came.at(-1) === 'same-settings', 5_000, 'the request', 2);
    backend.respond('same-settings');
    expect((await asked.answer).status).toBe(200);
  });
});
