import { Counter, createMetricsRegistry } from '../../../platform/metrics';
import { countOperations, type FailedStatus } from '../../../storage/objects/count-operations';

it('counts a failed operation as what becomes of it, and everything else as it is', async () => {
  const registry = createMetricsRegistry('api');
  const counter = new Counter({
    name: 'operations',
    help: 'operations',
    labelNames: ['operation', 'component', 'status'] as const,
    registers: [registry],
  });
  let status: FailedStatus = 'retry';
  const observe = countOperations(counter, 'garbage-collector', () => status);
  observe('store', 'success');
  observe('store', 'retry');
  observe('delete', 'failed');
  status = 'exhausted';
  observe('delete', 'failed');
  const component = 'garbage-collector';
  const { values } = await counter.get();
  const moved = values.filter(({ value }) => value !== 0);
  expect(moved.map(({ labels, value }) => [labels, value])).toEqual([
    [{ operation: 'store', component, status: 'success' }, 1],
    [{ operation: 'store', component, status: 'retry' }, 1],
    [{ operation: 'delete', component, status: 'retry' }, 1],
    [{ operation: 'delete', component, status: 'exhausted' }, 1],
  ]);
  // Each operation with each status, so that a first failure is an increase.
  expect(values).toHaveLength(9);
});
