import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { createBatchWorkflows } from '../../client/batch-workflows';
import { createBatchEnder } from '../../client/batch-ender';
import { createDescribe } from '../../client/describe-workflow';
import { createListRunning } from '../../client/list-running';
import { batchIdFromBytes } from '../../core/names/ids';
import { startTemporal, TEMPORAL_START_MS, type TestTemporal } from '../support/temporal';
import { until } from '../support/until';

let temporal: TestTemporal;
let connection: Connection;

beforeAll(async () => {
  temporal = await startTemporal();
  connection = await Connection.connect({ address: temporal.address });
}, TEMPORAL_START_MS);
afterAll(async () => {
  await connection?.close();
  await temporal?.stop();
});

it('lists running batches until they are ended without their workflow', async () => {
  const client = new Client({ connection, namespace: temporal.namespace });
  const batchWorkflows = createBatchWorkflows(client, { callTimeoutMs: 10_000 });
  const id = batchIdFromBytes(randomBytes(16));
  const expiresAtSec = Math.floor(Date.now() / 1000) + 3600;
  const batch = { id, tenant: 't', endpoint: '/v1/embeddings', expiresAtSec, inputFileId: 'f' };
  await batchWorkflows.start(batch);
  const list = createListRunning(client);
  await until(async () => (await list()).has(id), 20_000, 'the batch in visibility', 50);
  const ender = createBatchEnder(client);
  await ender.terminate(id);
  await ender.terminate(id);
  await ender.terminate(batchIdFromBytes(randomBytes(16)));
  expect(await createDescribe(client)(id)).toBe('closed');
  await until(async () => !(await list()).has(id), 20_000, 'the end in visibility', 50);
  await ender.deliverLater(id);
  await ender.deliverLater(id);
});
