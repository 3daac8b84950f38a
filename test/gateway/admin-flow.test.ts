import {
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

const BY_TENANT = { auth: { mode: 'header' }, tenants: { vip: { max_band: 'critical' } } };
const as = (tenant: string, objective = 'none') => ({
  'x-maas-username': tenant,
  'x-gateway-inference-objective': objective,
});

it('shows bands, flows and backends of a pool while requests wait', async () => {
  const backend = await startBackend();
  const weights = { fairness: { tenants: { acme: 3 } } };
  const gateway = await startGateway([backend], { ...ONE_IN_FLIGHT, ...BY_TENANT, ...weights });
  ask(gateway, {}, as('vip', 'realtime'));
  await untilHeld(backend, 1);
  for (let i = 1; i <= 2; i++) {
    ask(gateway, {}, as('acme'));
    await untilQueued(gateway, i);
  }
  ask(gateway, {}, as('acme', 'batch'));
  await untilQueued(gateway, 3);
  const { bands, flows, backends, bounds, stock, saturation } = await gateway.flow();
  expect(bands).toEqual({
    critical: band({ in_flight: 1, share: 1, dispatched: { ...NONE, bypass: 1 } }),
    standard: band({ queued: 2, oldest_ms: expect.any(Number) }),
    sheddable: band({ queued: 1, oldest_ms: expect.any(Number) }),
  });
  const flow = { model: 'm', tokens_60s: 0, weight: 1, queued: 0, in_flight: 0, oldest_ms: null };
  expect(flows).toEqual([
    {
      ...flow,
      band: 'standard',
      tenant: 'acme',
      weight: 3,
      queued: 2,
      oldest_ms: expect.any(Number),
    },
    {
      ...flow,
      band: 'sheddable',
      tenant: 'acme',
      weight: 3,
      queued: 1,
      oldest_ms: expect.any(Number),
    },
    { ...flow, band: 'critical', tenant: 'vip', in_flight: 1 },
  ]);
  expect(backends).toMatchObject([
    { url: backend.url, state: 'ready', reason: null, limit: 8, in_flight: 1, ttfb_ms: null },
  ]);
  expect([bounds, stock.requests, saturation]).toEqual([
    { mode: 'fixed', lower: 1, watermark: 1, upper: 1 },
    1,
    1,
  ]);
});

const NONE = { bypass: 0, queue: 0, floor: 0, promoted: 0 };

function band(changes: object) {
  return { queued: 0, in_flight: 0, oldest_ms: null, share: 0, dispatched: NONE, ...changes };
}

it('shows the tokens of a flow, and times to the first byte of its backend', async () => {
  const backend = await startBackend((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end('data: {"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}\n\n');
  });
  const gateway = await startGateway([backend]);
  for (let i = 0; i < 5; i++) await ask(gateway, { stream: true }).answer;
  const isIdle = async () => (await gateway.flow()).stock.requests === 0;
  await until(isIdle, 5_000, 'an empty stock', 2);
  const { flows, backends, ttfb, bands, bounds } = await gateway.flow();
  // Nothing is learnt yet, so users are not held by the first guess.
  expect(bounds).toEqual({ mode: 'learnt', lower: 256, watermark: 8, upper: 256 });
  expect(flows).toMatchObject([{ tenant: 'default', tokens_60s: 25, in_flight: 0, queued: 0 }]);
  expect(bands.standard.dispatched).toEqual({ ...NONE, bypass: 5 });
  const [{ ttfb_ms: nowMs, ttfb_base_ms: baseMs } = { ttfb_ms: null, ttfb_base_ms: null }] =
    backends;
  expect(nowMs).toEqual(expect.any(Number));
  expect(baseMs).toBe(nowMs);
  expect(ttfb).toEqual([{ max_prompt_tokens: 512, now_ms: nowMs, base_ms: baseMs }]);
});

it('says why a backend is not ready, and when its Retry-After pauses it', async () => {
  const [first, second] = [
    await startBackend((_request, response) => {
      response.writeHead(429, { 'retry-after': '5' }).end('full');
    }),
    await startBackend(),
  ];
  const gateway = await startGateway([first, second]);
  second.health = 503;
  const states = async () => (await gateway.flow()).backends.map(({ state }) => state);
  await until(async () => (await states())[1] === 'not_ready', 5_000, 'a backend that is away', 5);
  expect((await ask(gateway).answer).status).toBe(429);
  expect((await gateway.flow()).backends).toMatchObject([
    { state: 'paused', reason: 'it answered with Retry-After' },
    { state: 'not_ready', reason: 'the probe got status 503' },
  ]);
});
