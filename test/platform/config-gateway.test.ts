import { isNightshiftError } from '../../core/errors';
import { POOL_DEFAULTS } from '../../core/dispatch/pool/pool-settings';
import { idleConnectionMs, poolSettings } from '../../gateway/pools/settings';
import { loadConfig } from '../../platform/config';
import { printConfig } from '../../platform/config-print';

const POOLS = { main: { models: ['*'], backends: [{ url: 'http://127.0.0.1:8001' }] } };

function problemsOf(gateway: Record<string, unknown>, rest: Record<string, unknown> = {}) {
  try {
    loadConfig({ env: {}, needs: ['pools'], overrides: { gateway, ...rest } });
  } catch (error) {
    if (!isNightshiftError(error, 'config_invalid')) throw error;
    return error.message.split('\n  ').slice(1).join('\n');
  }
  return '';
}

it('has the defaults of the queue', () => {
  const { gateway } = loadConfig({
    env: {},
    needs: ['pools'],
    overrides: { gateway: { pools: POOLS } },
  });
  expect(poolSettings(gateway)).toEqual(POOL_DEFAULTS);
});

it('keeps a connection for as long as its request may wait and be answered', () => {
  const pools = {
    main: { ...POOLS.main, request_timeout: '10m' },
    other: { ...POOLS.main, models: ['o'], request_timeout: '20m' },
  };
  const idleMs = (gateway: Record<string, unknown>) =>
    idleConnectionMs(loadConfig({ env: {}, needs: ['pools'], overrides: { gateway } }).gateway);
  expect(idleMs({ pools })).toBeGreaterThan(20 * 60_000 + 60_000);
  const queue = { fair_request_queue: { queue_ttl: '15m', batch_queue_ttl: '30m' } };
  expect(idleMs({ pools, ...queue })).toBeGreaterThan(50 * 60_000);
  const short = { main: { ...POOLS.main, request_timeout: '1s' } };
  expect(idleMs({ pools: short })).toBe(120_000);
});

it('wants room for the largest body among the bytes of batches', () => {
  expect(problemsOf({ pools: POOLS, sheddable_bytes: '16MiB' })).toContain(
    'gateway.sheddable_bytes: must be at least gateway.max_body_bytes',
  );
});

it('reports every broken rule of the gateway at once', () => {
  const problems = problemsOf({
    pools: { a: POOLS.main, b: POOLS.main },
    queue_bytes: '1MiB',
    fair_request_queue: { flow_capacity: 2_000, queue_ttl: 0 },
    request_queue_controller: { lower_bound_per_backend: 3 },
    adaptive: { initial: 300 },
    bands: { ceilings: [0.5, 1, 1] },
  });
  for (const part of [
    'gateway.pools.b.models: * is already in the pool a',
    'gateway.queue_bytes: must be at least',
    'gateway.fair_request_queue.flow_capacity: must not exceed',
    'gateway.fair_request_queue.queue_ttl: must be longer than 0',
    'gateway.request_queue_controller.lower_bound_per_backend: must not exceed the watermark, 2',
    'gateway.adaptive.max: must be at least gateway.adaptive.initial',
    'gateway.bands.ceilings: must not rise',
  ]) {
    expect(problems).toContain(part);
  }
});

it('needs a pool, and a loopback address without authentication', () => {
  expect(problemsOf({})).toContain('gateway.pools: required');
  expect(problemsOf({ pools: POOLS, host: '0.0.0.0' })).toContain(
    'gateway.host: auth.mode is none',
  );
  expect(problemsOf({ pools: POOLS }, { auth: { mode: 'api_key' } })).toContain('postgres.url');
});

it('prints durations with their units, and hides secrets in URLs of backends', () => {
  const pools = { main: { models: ['*'], backends: [{ url: 'http://127.0.0.1:1/?sig=12345' }] } };
  const config = loadConfig({ env: {}, needs: ['pools'], overrides: { gateway: { pools } } });
  const printed = printConfig(config);
  expect(printed).toContain('queue_ttl: 30s');
  expect(printed).not.toContain('12345');
});
