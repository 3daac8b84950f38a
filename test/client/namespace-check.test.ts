import type { Client } from '@temporalio/client';
import { openClient } from '../../client/connection';
import { checkNamespace } from '../../client/namespace-check';
import { prepareSchedules } from '../../client/schedules';
import { configSchema } from '../../platform/config-schema';
import { startTemporal, TEMPORAL_START_MS, type TestTemporal } from '../support/temporal';

let temporal: TestTemporal;
beforeAll(async () => void (temporal = await startTemporal()), TEMPORAL_START_MS);
afterAll(() => temporal?.stop());

it('lists what migrate would create, and nothing once it has run', async () => {
  const { address, namespace } = temporal;
  const config = configSchema.parse({ temporal: { address, namespace } }).temporal;
  const client = openClient(config);
  try {
    expect(await checkNamespace(client)).toEqual({
      missing: ['schedule nightshift-reconcile', 'schedule nightshift-sweep'],
      unknown: [],
    });
    await prepareSchedules(config);
    expect(await checkNamespace(client)).toEqual({ missing: [], unknown: [] });
  } finally {
    await client.connection.close();
  }
}, 30_000);

it('reports missing attributes and a short retention, and what it has no permission to read', async () => {
  const denied = Object.assign(new Error('no'), { code: 7 });
  const client = {
    options: { namespace: 'n' },
    connection: {
      operatorService: {
        listSearchAttributes: () => Promise.resolve({ customAttributes: { BatchTenant: 2 } }),
      },
      workflowService: {
        describeNamespace: () =>
          Promise.resolve({ config: { workflowExecutionRetentionTtl: { seconds: 3_600 } } }),
      },
    },
    schedule: {
      getHandle: () => ({ describe: () => Promise.reject(new Error('', { cause: denied })) }),
    },
  } as unknown as Client;
  const { missing, unknown } = await checkNamespace(client);
  expect(missing).toContain('search attribute BatchModels (KeywordList)');
  expect(missing).not.toContain('search attribute BatchTenant (Keyword)');
  expect(missing).toContain('retention of at least 7 days');
  expect(unknown).toEqual(['schedules']);
});
