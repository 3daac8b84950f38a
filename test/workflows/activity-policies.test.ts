import { proxyActivities } from '@temporalio/workflow';
import {
  awaitReleasedActivity,
  endUnroutedActivity,
  executeChunkActivity,
  finalizeActivity,
  ingestActivity,
} from '../../workflows/activity-policies';
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

const RETURNS = { mayWait: false, mayBeHeld: false, scheduleToStartMs: undefined };

it('dispatches no activity eagerly, awaits cancelled ones, and times none out while no worker runs', () => {
  const policy = { settings, queue: 'q', timeSliceMs: 1, requestTimeoutMs: 1, ...RETURNS };
  ingestActivity(settings);
  executeChunkActivity({ ...policy, attempts: 1, summary: 's' });
  finalizeActivity(settings);
  awaitReleasedActivity(settings);
  endUnroutedActivity(settings, 's');
  const options = jest.mocked(proxyActivities).mock.calls.map(([one]) => one);
  expect(options.length).toBeGreaterThanOrEqual(8);
  for (const one of options) {
    expect(one).toMatchObject({
      allowEagerDispatch: false,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    });
    // Such a timeout would run while no worker exists.
    expect(one).not.toHaveProperty('scheduleToCloseTimeout');
  }
});

it('gives all chunks the same priority, and the fairness weight of their tenant', () => {
  const policy = {
    queue: 'q',
    timeSliceMs: 1,
    requestTimeoutMs: 1,
    attempts: 1,
    summary: 's',
    ...RETURNS,
  };
  const { calls } = jest.mocked(proxyActivities).mock;
  executeChunkActivity({ ...policy, settings });
  expect(calls.at(-1)?.[0].priority).toEqual({ priorityKey: 3 });
  executeChunkActivity({ ...policy, settings: { ...settings, fairnessWeight: 2.5 } });
  expect(calls.at(-1)?.[0].priority).toEqual({ priorityKey: 3, fairnessWeight: 2.5 });
});

it('limits the attempts of a chunk, unless it may wait at the server', () => {
  const policy = {
    settings,
    queue: 'q',
    timeSliceMs: 1,
    requestTimeoutMs: 1,
    attempts: 3,
    summary: 's',
  };
  const { calls } = jest.mocked(proxyActivities).mock;
  executeChunkActivity({ ...policy, ...RETURNS });
  expect(calls.at(-1)?.[0].retry).toMatchObject({ maximumAttempts: 3 });
  expect(calls.at(-1)?.[0]).not.toHaveProperty('scheduleToStartTimeout');
  executeChunkActivity({ ...policy, ...RETURNS, mayWait: true, scheduleToStartMs: 5_000 });
  expect(calls.at(-1)?.[0].retry).not.toHaveProperty('maximumAttempts');
  expect(calls.at(-1)?.[0]).toMatchObject({ scheduleToStartTimeout: 5_000 });
});

it('gives a chunk half an hour once a gateway has held one of its model', () => {
  const requestTimeoutMs = 60_000;
  const { calls } = jest.mocked(proxyActivities).mock;
  const limitOf = (timeSliceMs: number, mayBeHeld: boolean) => {
    const policy = { settings, queue: 'q', requestTimeoutMs, attempts: 3, summary: 's' };
    executeChunkActivity({ ...policy, ...RETURNS, timeSliceMs, mayBeHeld });
    return calls.at(-1)?.[0].startToCloseTimeout;
  };
  expect(limitOf(15_000, false)).toBe(15_000 + 150_000);
  expect(limitOf(15_000, true)).toBe(30 * 60_000 + 150_000);
  expect(limitOf(3_600_000, true)).toBe(3_600_000 + 150_000);
});
