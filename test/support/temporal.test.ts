import { Client, Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract';
import { startTemporal, TEMPORAL_START_MS } from './temporal';
import type { TestTemporal } from './temporal';

describe('the Temporal server of the tests', () => {
  let first: TestTemporal;
  let second: TestTemporal;

  beforeAll(async () => {
    first = await startTemporal();
    second = await startTemporal();
  }, TEMPORAL_START_MS);

  it('is one server with a namespace for each who asks', () => {
    expect(second.address).toBe(first.address);
    expect(second.namespace).not.toBe(first.namespace);
  });

  it('knows the search attributes and starts workflows at once', async () => {
    const connection = await Connection.connect({ address: first.address });
    const { namespace } = first;
    const known = await connection.operatorService.listSearchAttributes({ namespace });
    expect(Object.keys(known.customAttributes)).toEqual(
      expect.arrayContaining(Object.keys(SEARCH_ATTRIBUTES)),
    );
    const client = new Client({ connection, namespace });
    const handle = await client.workflow.start('nobodyRunsIt', {
      workflowId: 'wf',
      taskQueue: 'none',
      searchAttributes: { BatchTenant: ['a'] },
    });
    expect((await handle.describe()).status.name).toBe('RUNNING');
    await connection.close();
  });
});
