import { proxyActivities } from '@temporalio/workflow';
import { chunk, finalization, holders, ingestion, unrouted } from '../../workflows/proxies';
import '../../workflows/maintenance';
import type { BatchSettings } from '../../activities/contract';

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/workflow'),
  proxyActivities: jest.fn(() => ({})),
  proxyLocalActivities: jest.fn(() => ({})),
}));

const settings: BatchSettings = {
  lanesPerModel: 4,
  heartbeatTimeoutMs: 5_000,
  cancelGraceMs: 0,
  expiryGraceMs: 0,
  finalizeWindowMs: 5_000,
  historyEvents: null,
};

const WAY = { mayWait: false, queuedMs: undefined };

it('dispatches no activity eagerly, waits for each that is cancelled, and lets no outage time one out', () => {
  const policy = { settings, queue: 'q', boxMs: 1, requestTimeoutMs: 1, ...WAY };
  ingestion(settings);
  chunk({ ...policy, attempts: 1, summary: 's' });
  finalization(settings);
  holders(settings);
  unrouted(settings, 's');
  const options = jest.mocked(proxyActivities).mock.calls.map(([one]) => one);
  expect(options.length).toBeGreaterThanOrEqual(8);
  for (const one of options) {
    expect(one).toMatchObject({
      allowEagerDispatch: false,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    });
    // It runs while no worker exists.
    expect(one).not.toHaveProperty('scheduleToCloseTimeout');
  }
});

it("gives all chunks one priority, and the weight of their tenant: the tenant's key is the workflow's", () => {
  const policy = { queue: 'q', boxMs: 1, requestTimeoutMs: 1, attempts: 1, summary: 's', ...WAY };
  const { calls } = jest.mocked(proxyActivities).mock;
  chunk({ ...policy, settings });
  expect(calls.at(-1)?.[0].priority).toEqual({ priorityKey: 3 });
  chunk({ ...policy, settings: { ...settings, fairnessWeight: 2.5 } });
  expect(calls.at(-1)?.[0].priority).toEqual({ priorityKey: 3, fairnessWeight: 2.5 });
});

it('counts the attempts of a chunk, unless it waits at the server and counts its deaths itself', () => {
  const policy = { settings, queue: 'q', boxMs: 1, requestTimeoutMs: 1, attempts: 3, summary: 's' };
  const { calls } = jest.mocked(proxyActivities).mock;
  chunk({ ...policy, ...WAY });
  expect(calls.at(-1)?.[0].retry).toMatchObject({ maximumAttempts: 3 });
  expect(calls.at(-1)?.[0]).not.toHaveProperty('scheduleToStartTimeout');
  chunk({ ...policy, mayWait: true, queuedMs: 5_000 });
  expect(calls.at(-1)?.[0].retry).not.toHaveProperty('maximumAttempts');
  expect(calls.at(-1)?.[0]).toMatchObject({ scheduleToStartTimeout: 5_000 });
});
