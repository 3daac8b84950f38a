import { MockActivityEnvironment } from '@temporalio/testing';
import { Counter, createMetricsRegistry } from '../../platform/metrics';
import { countSweep } from '../../workers/count-sweep';

it.each([
  [{ attempt: 1, maximumAttempts: 5 }, 'retry'],
  [{ attempt: 4, maximumAttempts: 5 }, 'retry'],
  [{ attempt: 5, maximumAttempts: 5 }, 'exhausted'],
  [{ attempt: 9, maximumAttempts: 0 }, 'retry'],
])('counts a failure of the sweep in attempt %j as %s', async (given, expected) => {
  const registry = createMetricsRegistry('worker');
  const counter = new Counter({
    name: 'operations',
    help: 'operations',
    labelNames: ['operation', 'component', 'status'] as const,
    registers: [registry],
  });
  const { attempt, maximumAttempts } = given;
  const activity = new MockActivityEnvironment({ attempt, retryPolicy: { maximumAttempts } });
  const observe = countSweep(counter);
  await activity.run(async () => {
    observe('delete', 'success');
    observe('delete', 'failed');
  });
  const { values } = await counter.get();
  const counted = values.filter(({ value }) => value > 0);
  expect(counted.map(({ labels }) => labels.status)).toEqual(['success', expected]);
});
