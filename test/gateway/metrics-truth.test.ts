import { connect } from 'node:net';
import { metricValues } from '../support/metric-values';
import { until } from '../support/until';
import {
  ask,
  closeAll,
  FALLS_AT_ONCE,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  type TestGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

/** Known traffic moves every series of a gateway by a known amount. */

afterEach(closeAll);

const ACME = { 'x-maas-username': 'acme' };
const OTHER = { 'x-maas-username': 'other' };
const VIP = { 'x-maas-username': 'vip', 'x-gateway-inference-objective': 'urgent' };
const FLEX = { service_tier: 'flex' };

/** All series that are not 0, without those of Node, sums and buckets. */
async function moved(gateway: TestGateway): Promise<Record<string, number>> {
  const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const all = Object.entries(metricValues(page)).filter(
    ([name, value]) => value !== 0 && !/^(process|nodejs)_|_bucket\{|_sum\b/.test(name),
  );
  // How often the pump looks depends on the timer.
  const timed = ['popper_dequeue_attempts{pool="main"}', 'event_loop_delay_seconds_count'];
  return Object.fromEntries(all.filter(([name]) => !timed.includes(name)));
}

/** Bytes that bodies and recordings may take, by default. */
const LIMITS = { gateway_queue_bytes: 256 * 2 ** 20, audio_spool_max_bytes: 4 * 2 ** 30 };

/** Series that a gateway with one backend, one model and a bound of one request always shows. */
const AT_REST = {
  'upper_bound{pool="main"}': 1,
  'lower_bound{pool="main"}': 1,
  'watermark{pool="main"}': 1,
  ...LIMITS,
};

/** Waits until so many requests are counted, which happens after their clients have the answers. */
function untilCounted(gateway: TestGateway, count: number): Promise<unknown> {
  const isCounted = async () => {
    const all = Object.entries(await moved(gateway));
    const answered = all.filter(([name]) => name.startsWith('http_requests_total'));
    return answered.reduce((sum, [, value]) => sum + value, 0) === count;
  };
  return until(isCounted, 5_000, `${count} counted requests`, 5);
}

function posts(byStatus: Readonly<Record<number, number>>): Record<string, number> {
  const path = '/v1/chat/completions';
  return Object.fromEntries(
    Object.entries(byStatus).flatMap(([status, count]) => {
      const labels = `method="POST",path="${path}",status="${status}"`;
      return [
        [`http_requests_total{${labels}}`, count],
        [`http_request_duration_seconds_count{${labels}}`, count],
      ];
    }),
  );
}

const M = 'model="m",targetModel="m"';

/** Seven served requests, a client that hung up, a 404, and three refusals. */
function afterTraffic(url: string): Record<string, number> {
  return {
    ...AT_REST,
    ...posts({ 200: 7, 404: 1, 499: 1, 503: 3 }),
    [`bypass_rate{${M}}`]: 1,
    [`requests_cancelled{${M}}`]: 1,
    [`queue_push_errors{${M},error_type="ErrInsufficientFlowCapacity"}`]: 1,
    [`queue_push_errors{${M},error_type="ErrTooManyFlows"}`]: 1,
    [`queue_latency_seconds_count{${M},success="true"}`]: 7,
    [`queue_latency_seconds_count{${M},success="false"}`]: 4,
    'popper_dequeue_successes{pool="main"}': 6,
    'gateway_dispatched_total{band="standard",by="bypass"}': 1,
    'gateway_dispatched_total{band="standard",by="queue"}': 4,
    'gateway_dispatched_total{band="sheddable",by="floor"}': 1,
    'gateway_dispatched_total{band="critical",by="queue"}': 1,
    'gateway_dropped_total{band="standard",code="client_closed"}': 1,
    'gateway_dropped_total{band="standard",code="insufficient_flow_capacity"}': 1,
    'gateway_dropped_total{band="sheddable",code="evicted"}': 1,
    'gateway_dropped_total{band="sheddable",code="too_many_flows"}': 1,
    'gateway_preempted_total{band="sheddable"}': 1,
    // Five tokens of input and five of output each.
    'gateway_service_tokens_total{band="standard",tenant="acme"}': 75,
    'gateway_service_tokens_total{band="sheddable",tenant="acme"}': 15,
    'gateway_service_tokens_total{band="critical",tenant="vip"}': 15,
    'gateway_ttfb_seconds_count{band="standard"}': 5,
    'gateway_ttfb_seconds_count{band="sheddable"}': 1,
    'gateway_ttfb_seconds_count{band="critical"}': 1,
    [`gateway_backend_ready{backend="${url}"}`]: 1,
    // It was never full long enough to grow.
    [`gateway_backend_limit{backend="${url}"}`]: 8,
  };
}

it('counts what it dispatches, holds, refuses and evicts', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], {
    ...ONE_IN_FLIGHT,
    auth: { mode: 'header' },
    fair_request_queue: { total_capacity: 3, flow_capacity: 2 },
    objectives: { urgent: 'critical' },
    tenants: { vip: { max_band: 'critical' } },
  });
  const first = ask(gateway, {}, ACME);
  await untilHeld(backend, 1);
  const second = ask(gateway, {}, ACME);
  await untilQueued(gateway, 1);
  const third = ask(gateway, {}, ACME);
  await untilQueued(gateway, 2);
  const flex = ask(gateway, FLEX, ACME);
  await untilQueued(gateway, 3);
  // While it waits, a standard request is dispatched. Then its share is below the floor, so it overtakes the third.
  for (const exchange of [first, second, flex]) {
    backend.respond();
    await untilHeld(backend, 1);
    expect((await exchange.answer).status).toBe(200);
  }

  const leaving = ask(gateway, {}, ACME);
  await untilQueued(gateway, 1);
  leaving.hangUp();
  await untilQueued(gateway, 0);
  const waiting = [ask(gateway, {}, ACME), ask(gateway, {}, ACME)];
  await untilQueued(gateway, 2);
  expect((await ask(gateway, {}, ACME).answer).json().error?.code).toBe(
    'insufficient_flow_capacity',
  );
  const evicted = ask(gateway, FLEX, OTHER);
  await untilQueued(gateway, 3);
  const vip = ask(gateway, {}, VIP);
  expect((await evicted.answer).json().error?.code).toBe('evicted');
  expect((await ask(gateway, FLEX, OTHER).answer).json().error?.code).toBe('too_many_flows');
  expect((await ask(gateway, { model: 'none' }, ACME).answer).status).toBe(404);

  expect(await moved(gateway)).toMatchObject({
    ...AT_REST,
    [`queue_length{${M}}`]: 3,
    [`stock_level{${M}}`]: 1,
    'active_flows{pool="main"}': 2,
    'gateway_queued_requests{pool="main",band="critical"}': 1,
    'gateway_queued_requests{pool="main",band="standard"}': 2,
    // Three bodies of 27 bytes: {"model":"m","messages":[]}.
    'gateway_queued_bytes{pool="main"}': 81,
    'gateway_saturation{pool="main"}': 1,
    [`gateway_backend_in_flight{backend="${backend.url}"}`]: 1,
    'http_requests_in_flight{method="POST",path="/v1/chat/completions"}': 4,
  });
  for (const exchange of [third, vip, ...waiting]) {
    await untilHeld(backend, 1);
    backend.respond();
    expect((await exchange.answer).status).toBe(200);
  }
  await until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'an empty stock');
  await untilCounted(gateway, 12);
  expect(await moved(gateway)).toEqual(afterTraffic(backend.url));
});

it('counts times to live and failures of backends', async () => {
  const backend = await startBackend();
  const gateway = await startGateway(
    [backend],
    {
      ...ONE_IN_FLIGHT,
      fair_request_queue: { queue_ttl: '150ms', no_backend_ttl: '100ms' },
    },
    { probe: { interval: '50ms', ...FALLS_AT_ONCE } },
  );
  const lost = ask(gateway);
  await untilHeld(backend, 1);
  expect((await ask(gateway).answer).json().error?.code).toBe('queue_ttl_expired');
  const late = await ask(gateway, {}, { 'x-slo-ttft-ms': '50' }).answer;
  expect(late.json().error?.code).toBe('deadline_exceeded');
  backend.held.shift()?.response.destroy();
  expect((await lost.answer).json().error?.code).toBe('backend_lost');
  const cut = ask(gateway);
  await untilHeld(backend, 1);
  backend.held[0]?.response.writeHead(200).write('a piece');
  await cut.head;
  backend.held[0]?.response.destroy();
  await expect(cut.answer).rejects.toThrow();

  backend.health = 500;
  const ready = `gateway_backend_ready{backend="${backend.url}"}`;
  await until(async () => !(ready in (await moved(gateway))), 5_000, 'a backend that is away');
  expect((await ask(gateway).answer).json().error?.code).toBe('no_backends');
  await untilCounted(gateway, 5);
  expect(await moved(gateway)).toEqual({
    ...LIMITS,
    ...posts({ 200: 1, 502: 1, 503: 2, 504: 1 }),
    [`bypass_rate{${M}}`]: 2,
    [`requests_expired{${M}}`]: 1,
    [`queue_latency_seconds_count{${M},success="false"}`]: 5,
    'gateway_saturation{pool="main"}': 1,
    'gateway_dispatched_total{band="standard",by="bypass"}': 2,
    'gateway_answers_cut_total{band="standard"}': 1,
    'gateway_ttfb_seconds_count{band="standard"}': 1,
    'gateway_dropped_total{band="standard",code="queue_ttl_expired"}': 1,
    'gateway_dropped_total{band="standard",code="deadline_exceeded"}': 1,
    'gateway_dropped_total{band="standard",code="backend_lost"}': 1,
    'gateway_dropped_total{band="standard",code="no_backends"}': 1,
    [`gateway_backend_limit{backend="${backend.url}"}`]: 8,
  });
});

it('counts connections that it refuses', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], { max_connections: 3 });
  const sockets = [1, 2, 3, 4].map(() => connect(Number(new URL(gateway.url).port), '127.0.0.1'));
  const refused = 'gateway_connections_refused_total';
  await until(async () => refused in (await moved(gateway)), 5_000, 'a refused connection');
  for (const socket of sockets) socket.destroy();
  expect(await moved(gateway)).toMatchObject({
    [refused]: 1,
    'http_connections_closed_total{reason="max_connections_per_address"}': 1,
  });
});
