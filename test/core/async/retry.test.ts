import { retry, type RetryOptions } from '../../../core/async/retry';

/** A clock that advances only when `sleep` is called. */
function options(changes: Partial<RetryOptions> = {}): RetryOptions & { pauses: number[] } {
  const pauses: number[] = [];
  let nowMs = 0;
  return {
    policy: { firstPauseMs: 100, maxPauseMs: 350, limitMs: 1_000 },
    nowMs: () => nowMs,
    sleep: (ms) => {
      pauses.push(ms);
      nowMs += ms;
      return Promise.resolve();
    },
    isRetryable: () => true,
    pauses,
    ...changes,
  };
}

it('returns the first success, after pauses that double up to their maximum', async () => {
  const with3 = options();
  let attempts = 0;
  const work = () => (++attempts > 4 ? Promise.resolve('done') : Promise.reject(new Error('no')));
  await expect(retry(work, with3)).resolves.toBe('done');
  expect(with3.pauses).toEqual([100, 200, 350, 350]);
});

it('throws the last error once the time limit has passed', async () => {
  const limited = options();
  let attempts = 0;
  const work = () => Promise.reject(new Error(`attempt ${++attempts}`));
  await expect(retry(work, limited)).rejects.toThrow('attempt 5');
});

it('throws an error that is not retryable at once', async () => {
  const none = options({ isRetryable: () => false });
  await expect(retry(() => Promise.reject(new Error('final')), none)).rejects.toThrow('final');
  expect(none.pauses).toEqual([]);
});
