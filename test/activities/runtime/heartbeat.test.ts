import { CancelledFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { startHeartbeat } from '../../../activities/runtime/heartbeat';

function environment(maximumAttempts?: number): { env: MockActivityEnvironment; beats: unknown[] } {
  const env = new MockActivityEnvironment(
    maximumAttempts === undefined ? {} : { retryPolicy: { maximumAttempts } },
  );
  const beats: unknown[] = [];
  env.on('heartbeat', (details: unknown) => beats.push(details));
  return { env, beats };
}

describe('the heartbeat of an activity', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is sent at once and every second with the bytes so far, until it is stopped', async () => {
    const { env, beats } = environment();
    await env.run(async () => {
      jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
      const liveness = startHeartbeat();
      liveness.bytes = 5;
      jest.advanceTimersByTime(2_000);
      liveness.stop();
      jest.advanceTimersByTime(5_000);
      jest.useRealTimers();
    });
    expect(beats).toEqual([{ bytes: 0 }, { bytes: 5 }, { bytes: 5 }]);
  });

  it('is not sent at once if the activity is tried once', async () => {
    const { env, beats } = environment(1);
    await env.run(async () => {
      jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
      const liveness = startHeartbeat();
      jest.advanceTimersByTime(999);
      expect(beats).toEqual([]);
      jest.advanceTimersByTime(1);
      liveness.stop();
      jest.useRealTimers();
    });
    expect(beats).toEqual([{ bytes: 0 }]);
  });

  it('reports the cancellation of the activity', async () => {
    const { env } = environment();
    await env.run(async () => {
      const liveness = startHeartbeat();
      expect(() => liveness.check()).not.toThrow();
      env.cancel();
      expect(() => liveness.check()).toThrow(CancelledFailure);
      liveness.stop();
    });
  });
});
