import { parse } from 'yaml';
import { isNightshiftError } from '../../core/errors';
import { idleConnectionMs, poolSettings } from '../../gateway/pools/settings';
import { loadConfig } from '../../platform/config';
import { flowBlocksOf, hasFixedBounds } from '../../platform/config-flow-blocks';
import { printConfig } from '../../platform/config-print';

const POOLS = { main: { models: ['*'], backends: [{ url: 'http://127.0.0.1:8001' }] } };

function load(gateway: Record<string, unknown>) {
  return loadConfig({ env: {}, needs: ['pools'], overrides: { gateway } });
}

function problemsOf(gateway: Record<string, unknown>, rest: Record<string, unknown> = {}) {
  try {
    loadConfig({ env: {}, needs: ['pools'], overrides: { gateway, ...rest } });
  } catch (error) {
    if (!isNightshiftError(error, 'config_invalid')) throw error;
    return error.message.split('\n  ').slice(1).join('\n');
  }
  return '';
}

it('gives batches nine tenths of the queue by default', () => {
  const { gateway } = load({ pools: POOLS });
  expect(poolSettings(gateway, gateway).fairRequestQueue.sheddableCapacity).toBe(900);
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
    'gateway.fair_request_queue.flow_capacity: must not exceed total_capacity, 1000',
    'gateway.fair_request_queue.queue_ttl: must be longer than 0',
    'gateway.request_queue_controller.lower_bound_per_backend: must not exceed the watermark, 2',
    'gateway.adaptive.max: must be at least initial, 300',
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

it('gives a pool its own settings over those of the gateway, key by key', () => {
  const { gateway } = load({
    pools: {
      own: {
        ...POOLS.main,
        fair_request_queue: { queue_ttl: '5s', unit_cost: true },
        request_queue_controller: { watermark_per_backend: 16, lower_bound_per_backend: null },
        adaptive: { max: 32 },
        bands: { ceilings: [1, 1, 0.5] },
        affinity: { load_bound: 3 },
      },
      plain: { ...POOLS.main, models: ['p'] },
    },
    fair_request_queue: { total_capacity: 50, flow_capacity: 10 },
    request_queue_controller: { lower_bound_per_backend: 1, reclaim: true },
  });
  const settingsOf = (name: string) => {
    const pool = gateway.pools[name]!;
    const blocks = flowBlocksOf(gateway, pool);
    return { ...poolSettings(gateway, blocks), blocks };
  };
  const [own, plain] = [settingsOf('own'), settingsOf('plain')];
  expect(own.fairRequestQueue).toMatchObject({ queueTtlMs: 5_000, totalCapacity: 50 });
  expect(plain.fairRequestQueue).toMatchObject({ queueTtlMs: 30_000, totalCapacity: 50 });
  expect(own.requestQueueController).toMatchObject({
    watermarkPerBackend: 16,
    lowerBoundPerBackend: null,
    reclaim: true,
  });
  expect(plain.requestQueueController).toMatchObject({
    watermarkPerBackend: 2,
    lowerBoundPerBackend: 1,
  });
  expect([own.bands.ceilings, plain.bands.ceilings]).toEqual([
    [1, 1, 0.5],
    [1, 1, 0.9],
  ]);
  expect(own.blocks).toMatchObject({
    fair_request_queue: { unit_cost: true },
    adaptive: { initial: 8, max: 32 },
    affinity: { load_bound: 3 },
  });
  expect(hasFixedBounds(flowBlocksOf(gateway, {}))).toBe(true);
  const learnt = { request_queue_controller: { lower_bound_per_backend: null } };
  expect(hasFixedBounds(flowBlocksOf(gateway, learnt))).toBe(false);
});

it('reports every broken rule of pools at once, with the name of the pool, and none twice', () => {
  const problems = problemsOf({
    pools: {
      a: {
        ...POOLS.main,
        fair_request_queue: { total_capacity: 20, sheddable_capacity: 30 },
        bands: { ceilings: [0.5, 0.6, 0.9] },
        request_queue_controller: { upper_bound_per_backend: 1 },
        adaptive: { min: 9 },
      },
      b: { ...POOLS.main, models: ['*', 'b'] },
    },
    fair_request_queue: { queue_ttl: 0 },
  }).split('\n');
  expect(problems.map((line) => line.replace(/ \(.*/, ''))).toEqual([
    expect.stringContaining('gateway.fair_request_queue.queue_ttl: must be longer than 0'),
    expect.stringContaining('gateway.pools.b.models: * is already in the pool a'),
    expect.stringContaining('gateway.pools.a.fair_request_queue.flow_capacity: must not exceed'),
    expect.stringContaining('gateway.pools.a.fair_request_queue.sheddable_capacity: must not'),
    expect.stringContaining(
      'gateway.pools.a.request_queue_controller.upper_bound_per_backend: must be at least',
    ),
    expect.stringContaining('gateway.pools.a.adaptive.initial: must be at least min, 9'),
    expect.stringContaining('gateway.pools.a.bands.ceilings: must not rise'),
  ]);
  expect(
    problemsOf({ pools: { a: { ...POOLS.main, fair_request_queue: { queue_tll: 1 } } } }),
  ).toContain('did you mean');
});

it.each(['http://a:1/', 'http://A:1', 'http://a:1/v1', 'http://a:1/v1/'])(
  'reports http://a:1 and %s as the same backend',
  (url) => {
    const pools = { a: { ...POOLS.main, backends: [{ url: 'http://a:1' }, { url }] } };
    expect(problemsOf({ pools })).toContain('gateway.pools.a.backends: names a URL twice');
  },
);

it('prints the settings of pools so that they can be read again', () => {
  const own = {
    fair_request_queue: { queue_ttl: '5s', sheddable_capacity: 7 },
    request_queue_controller: { watermark_per_backend: null, expiry_cleanup_interval: '2s' },
    bands: { promote_after: '1m', weights: [5, 3, 2] },
  };
  const { gateway } = load({ pools: { own: { ...POOLS.main, ...own } }, replicas: 1 });
  const printed = parse(printConfig(load({ pools: { own: { ...POOLS.main, ...own } } }))) as {
    gateway: Record<string, unknown>;
  };
  expect(printed.gateway['pools']).toMatchObject({ own });
  expect(load(printed.gateway).gateway).toEqual(gateway);
});

it('divides capacities and fixed bounds among several gateways', () => {
  const { gateway } = load({
    pools: POOLS,
    replicas: 3,
    fair_request_queue: { flow_capacity: 50 },
    request_queue_controller: {
      ...{ watermark_per_backend: 30, upper_bound_per_backend: 36, max_cost_per_backend: 900 },
      max_in_flight_per_flow: 10,
    },
  });
  expect(poolSettings(gateway, gateway)).toMatchObject({
    fairRequestQueue: { totalCapacity: 333, flowCapacity: 16, sheddableCapacity: 300 },
    requestQueueController: {
      ...{ watermarkPerBackend: 10, lowerBoundPerBackend: null, upperBoundPerBackend: 12 },
      ...{ maxCostPerBackend: 300, maxInFlightPerFlow: 3 },
    },
  });
});

it('refuses several gateways whose limits are learnt, or that would get less than one request', () => {
  const problems = problemsOf({
    pools: { ...POOLS, own: { ...POOLS.main, models: ['o'], request_queue_controller: FIXED } },
    replicas: 3,
    fair_request_queue: { flow_capacity: 2 },
  });
  expect(problems).toContain('gateway.replicas: must be 1, because the bounds of the pool main');
  expect(problems).not.toContain('because the bounds of the pool own');
  expect(problems).toContain('flow_capacity: must be at least gateway.replicas, 3');
  expect(problems).toContain(
    'gateway.pools.own.request_queue_controller.watermark_per_backend: must be at least gateway.replicas, 3',
  );
});

const FIXED = { percentage_deviation_for_bounds: 0.2 };

it('wants room in the spool for batches and one more recording', () => {
  const audio = { workers: [{ address: 'localhost:8003' }] };
  const problems = (rest: object) => problemsOf({ pools: POOLS, audio: { ...audio, ...rest } });
  expect(problems({ max_file_bytes: '513MiB' })).toContain(
    'gateway.audio.max_file_bytes: must not exceed 512MiB',
  );
  const spool = { max_bytes: '30MiB', sheddable_bytes: '20MiB' };
  expect(problems({ spool })).toContain('gateway.audio.spool.sheddable_bytes: must be at least');
  expect(problems({ spool })).toContain('gateway.audio.spool.max_bytes: must be at least');
});

it.each<[object, string]>([
  [{ fair_request_queue: { queue_ttl: '30s' } }, 'fair_request_queue.queue_ttl: must be longer'],
  [{ scheduler: { shutdown_grace: '30s' } }, 'scheduler.shutdown_grace: must be shorter'],
  [{ scheduler: { cancel_timeout: '0s' } }, 'scheduler.cancel_timeout: must be longer than 0'],
  [{ accumulator: { flush_interval: '2s' } }, 'accumulator.flush_interval: must not exceed 1s'],
  [{ grpc: { health_interval: '0s' } }, 'grpc.health_interval: must be longer than 0'],
  [{ fair_request_queue: { flow_capacity: 2_000 } }, 'flow_capacity: must not exceed'],
  [{ workers: [{ address: 'a:1' }, { address: 'a:1' }] }, 'workers: names an address twice'],
  [{ workers: [{ address: 'a:1', tls_client_key_file: 'k' }] }, 'needs both'],
])('refuses the settings %j of audio', (rest, problem) => {
  const audio = { workers: [{ address: 'localhost:8003' }], ...rest };
  expect(problemsOf({ audio })).toContain(problem);
});
