import { startLateStores, type LateStores } from '../support/late-stores';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';
import { runWorker } from '../../workers/main';

let stores: LateStores;
beforeEach(async () => {
  stores = await startLateStores();
}, POSTGRES_START_MS);
afterEach(() => stores.close());

it('waits for PostgreSQL, the S3 store and Temporal, alive and not ready, until a signal ends it', async () => {
  const stop = new AbortController();
  const start = runWorker(stores.config, { signal: stop.signal });
  start.catch(() => undefined);
  const untilWaitingFor = (name: string) =>
    until(
      async () => (await stores.ready())?.checks['process'] === `waiting for ${name}`,
      10_000,
      `waiting for ${name}`,
    );
  await untilWaitingFor('postgres');
  await stores.postgres.become('pass');
  await untilWaitingFor('object_store');
  await stores.s3.become('pass');
  await untilWaitingFor('temporal');
  expect((await stores.ready())?.status).toBe(503);
  stop.abort(new Error('SIGTERM'));
  await expect(start).rejects.toThrow('SIGTERM');
  expect(await stores.ready()).toBeNull();
});

it('ends with the error of what is away for longer than the limit', async () => {
  await Promise.all([stores.postgres.become('pass'), stores.s3.become('pass')]);
  await expect(runWorker(stores.config, { startWaitMs: 100 })).rejects.toMatchObject({
    code: 'temporal_unavailable',
    message: expect.stringContaining('No Temporal server answers at 127.0.0.1:1.'),
  });
});
