import pino from 'pino';
import { KNOWN_MS } from '../../../core/dispatch/announced-routes';
import type { Registry } from '../../../inference/registry';
import { createRegistry, NO_GATEWAYS } from '../../../inference/registry';
import { configSchema } from '../../../platform/config-schema';
import { createWorkerRoutes } from '../../../storage/postgres/worker-routes';
import type { RouteDirectory } from '../../../workers/route-directory';
import { openRouteDirectory, queuesOf } from '../../../workers/route-directory';
import { useDatabase } from '../../support/postgres';
import { until } from '../../support/until';

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];

beforeEach(() => database.pool.query('delete from worker_routes'));
afterEach(async () => {
  for (const part of opened.splice(0)) await part.close();
});

const gateway = (over: Record<string, unknown> = {}) => ({
  url: 'http://127.0.0.1:9',
  request_timeout: '1m',
  max_retries: 1,
  initial_backoff: '1s',
  max_backoff: '1s',
  ...over,
});

type Gateways = 'global' | Record<string, ReturnType<typeof gateway>>;

function registryOf(gateways: Gateways): Registry {
  const config = configSchema.parse(
    gateways === 'global' ? { global_inference_gateway: gateway() } : { model_gateways: gateways },
  );
  const registry = createRegistry(config);
  opened.push(registry);
  return registry;
}

async function worker(name: string, gateways: Gateways, intervalMs = 50): Promise<RouteDirectory> {
  const directory = await openRouteDirectory({
    registry: registryOf(gateways),
    table: createWorkerRoutes(database.pool),
    worker: name,
    logger: pino({ level: 'silent' }),
    intervalMs,
  });
  opened.push(directory);
  return directory;
}

const forget = (name: string, seconds: number) =>
  database.pool.query(
    `update worker_routes set seen_at = now() - $2 * interval '1 second' where worker = $1`,
    [name, seconds],
  );

describe('the queues of a worker', () => {
  it('are one for each of its models, and the shared one', () => {
    const twins = { a: gateway(), b: gateway(), c: gateway({ max_retries: 5 }) };
    expect(queuesOf(registryOf(twins))).toEqual([
      'nightshift-exec',
      'nightshift-exec.a',
      'nightshift-exec.b',
      'nightshift-exec.c',
    ]);
    expect(queuesOf(registryOf('global'))).toEqual(['nightshift-exec']);
  });

  const a = gateway();
  const b = gateway();
  const other = gateway({ request_timeout: '2m' });
  // Each row: the gateways before and after the change, and the queue of the model `b` afterwards.
  it.each<[string, Gateways, Gateways, string | null]>([
    ['joining', { a, b: other }, { a, b }, 'nightshift-exec.b'],
    ['splitting', { a, b }, { a, b: other }, 'nightshift-exec.b'],
    ['another order', { a, b }, { b, a }, 'nightshift-exec.b'],
    ['a new first entry', { a, b }, { c: a, a, b }, 'nightshift-exec.b'],
    ['the end of the other entry', { a, b }, { b }, 'nightshift-exec.b'],
    ['the end of its own entry', { a, b }, { a }, null],
    ['one gateway for all', { a, b }, 'global', 'nightshift-exec'],
    ['gateways for each', 'global', { a, b }, 'nightshift-exec.b'],
    ['gateways for others', 'global', { a }, null],
  ])('are known to the other workers after a change: %s', async (_, before, after, queue) => {
    const witness = await worker('witness', { w: gateway() });
    await (await worker('changed', before)).close();
    await until(() => witness.routeOf('b') !== null, 5_000, 'the route before', 20);
    const changed = await worker('changed', after);
    expect(changed.routeOf('b')?.queue ?? null).toBe(queue);
    await until(() => (witness.routeOf('b')?.queue ?? null) === queue, 5_000, 'the change', 20);
  });
});

describe('a worker without gateways', () => {
  const observer = async (): Promise<RouteDirectory> => {
    const directory = await openRouteDirectory({
      registry: NO_GATEWAYS,
      table: createWorkerRoutes(database.pool),
      worker: 'observer',
      logger: pino({ level: 'silent' }),
      intervalMs: 50,
    });
    opened.push(directory);
    return directory;
  };

  it('finds the routes of the others and announces none', async () => {
    const directory = await observer();
    const sender = await worker('sender', { a: gateway() });
    await until(() => directory.routeOf('a') !== null, 5_000, 'the route', 20);
    expect(directory.isKnown('n')).toBe(false);
    expect(sender.routeOf('n')).toBeNull();
    const { rows } = await database.pool.query('select worker from worker_routes');
    expect(rows).toEqual([{ worker: 'sender' }]);
  });

  it('takes no model for unknown while no worker sends at all', async () => {
    const directory = await observer();
    expect(directory.routeOf('a')).toBeNull();
    expect(directory.isKnown('a')).toBe(true);
    await (await worker('sender', { a: gateway() })).close();
    await directory.update();
    expect(directory.isKnown('n')).toBe(false);
  });
});

describe('an update of the routes', () => {
  it('finds a model that another worker has just announced', async () => {
    const old = await worker('old', { a: gateway() }, 3_600_000);
    await (await worker('new', { n: gateway() })).close();
    expect(old.isKnown('n')).toBe(false);
    await old.update();
    expect(old.isKnown('n')).toBe(true);
  });

  it('fails if the table cannot be read', async () => {
    let isAway = false;
    const table = createWorkerRoutes(database.pool);
    const directory = await openRouteDirectory({
      registry: registryOf({ a: gateway() }),
      table: {
        announce: (...args) =>
          isAway ? Promise.reject(new Error('away')) : table.announce(...args),
      },
      worker: 'old',
      logger: pino({ level: 'silent' }),
      intervalMs: 3_600_000,
    });
    opened.push(directory);
    isAway = true;
    await expect(directory.update()).rejects.toThrow('away');
  });
});

describe('the routes of a worker that is gone', () => {
  it('end, but its models stay known for a while', async () => {
    const old = await worker('old', { a: gateway() });
    await (await worker('new', { n: gateway() })).close();
    await until(() => old.routeOf('n') !== null, 5_000, 'the new model', 20);
    await forget('new', 60);
    await until(() => old.routeOf('n') === null, 5_000, 'the end of the worker', 20);
    expect(old.isKnown('n')).toBe(true);
    await forget('new', KNOWN_MS / 1000 + 1);
    await until(() => !old.isKnown('n'), 5_000, 'the model to be forgotten', 20);
  });

  it('are kept while PostgreSQL does not answer', async () => {
    let isAway = false;
    const table = createWorkerRoutes(database.pool);
    let asked = 0;
    const old = await openRouteDirectory({
      registry: registryOf({ a: gateway() }),
      table: {
        announce: (...args) => {
          asked++;
          return isAway ? Promise.reject(new Error('away')) : table.announce(...args);
        },
      },
      worker: 'old',
      logger: pino({ level: 'silent' }),
      intervalMs: 20,
    });
    opened.push(old);
    await (await worker('new', 'global')).close();
    await until(() => old.routeOf('n') !== null, 5_000, 'the global gateway', 20);
    isAway = true;
    asked = 0;
    await until(() => asked > 3, 5_000, 'a few failed announcements', 20);
    expect(old.routeOf('n')).toEqual({ queue: 'nightshift-exec', requestTimeoutMs: 60_000 });
  });
});
