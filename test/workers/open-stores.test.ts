import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { configSchema } from '../../platform/config-schema';
import { createMetricsRegistry } from '../../platform/metrics';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { openStores } from '../../workers/open-stores';
import { NO_WAIT } from '../support/no-wait';
import { POSTGRES_START_MS, withDatabase } from '../support/postgres';

const folder = mkdtempSync(join(tmpdir(), 'nightshift-resources-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it(
  'opens nothing on a database that lacks a step of the schema, and says what to run',
  async () => {
    const database = await withDatabase();
    await database.pool.query('delete from schema_migrations where id = 10');
    const config = configSchema.parse({
      postgres: { url: database.url },
      object_store: { type: 'filesystem', path: join(folder, 'store') },
      global_inference_gateway: { url: 'http://127.0.0.1:1' },
    });
    const opening = openStores(config, {
      logger: pino({ level: 'silent' }),
      metrics: createWorkerMetrics(createMetricsRegistry('worker'), {
        maxLabelValues: 10,
        idleMs: 60_000,
        models: [],
      }),
      tracing: null,
      wait: NO_WAIT,
    });
    await expect(opening).rejects.toMatchObject({
      code: 'schema_outdated',
      message: 'the database lacks 0010_last_resort: run nightshift migrate',
    });
    await database.close();
  },
  POSTGRES_START_MS,
);
