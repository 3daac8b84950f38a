import { runApi } from '../../api/main';
import { startLateStores, type LateStores } from '../support/late-stores';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';

let stores: LateStores;
beforeEach(async () => {
  stores = await startLateStores();
}, POSTGRES_START_MS);
afterEach(() => stores.close());

async function untilWaitingFor(name: string): Promise<void> {
  const isWaiting = async () => (await stores.ready())?.checks['process'] === `waiting for ${name}`;
  await until(isWaiting, 10_000, `waiting for ${name}`);
}

it('waits for PostgreSQL and an S3 store that come after it, alive and not ready, and then serves', async () => {
  const starting = runApi(stores.config);
  await untilWaitingFor('postgres');
  expect((await stores.ready())?.status).toBe(503);
  await stores.postgres.become('pass');
  await untilWaitingFor('object_store');
  await stores.s3.become('pass');
  const api = await starting;
  try {
    expect(await stores.ready()).toMatchObject({
      status: 200,
      checks: { postgres: 'ok', object_store: 'ok' },
    });
    expect((await fetch(`${api.url}/v1/files`)).status).toBe(200);
  } finally {
    await api.close();
  }
});

it('ends with the error of a store that is away for longer than the limit, and leaves nothing open', async () => {
  await stores.postgres.become('pass');
  const start = runApi(stores.config, { startWaitMs: 100 });
  await expect(start).rejects.toMatchObject({
    code: 'object_store_failed',
    message: expect.stringContaining('ECONNREFUSED'),
  });
  expect(await stores.ready()).toBeNull();
});

it.each([
  [404, 'NoSuchBucket', 'There is no bucket bucket'],
  [403, 'RequestTimeTooSkewed', 'The clock of this host differs'],
])('ends at once if the store answers %d %s', async (status, code, message) => {
  stores.bucket.script = () => ({ kind: 'answer', status, code });
  await Promise.all([stores.postgres.become('pass'), stores.s3.become('pass')]);
  await expect(runApi(stores.config)).rejects.toThrow(message);
});

it('waits while the store answers that it failed', async () => {
  let refused = 0;
  stores.bucket.script = () => {
    return refused++ < 6 ? { kind: 'answer', status: 500, code: 'InternalError' } : undefined;
  };
  await Promise.all([stores.postgres.become('pass'), stores.s3.become('pass')]);
  await (await runApi(stores.config)).close();
  expect(refused).toBeGreaterThan(6);
});

it('ends at once at a signal while it waits', async () => {
  const stop = new AbortController();
  const start = runApi(stores.config, { signal: stop.signal });
  start.catch(() => undefined);
  await untilWaitingFor('postgres');
  stop.abort(new Error('SIGTERM'));
  await expect(start).rejects.toThrow('SIGTERM');
  expect(await stores.ready()).toBeNull();
});
