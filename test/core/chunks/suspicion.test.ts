import { suspicionOf } from '../../../core/chunks/suspicion';

it.each([
  ['a range that never failed', { from: 0, to: 8 }, [3, false, false]],
  ['a half of a failed range', { from: 0, to: 4, failures: 0 }, [1, false, false]],
  ['a single suspect line', { from: 2, to: 3, failures: 0 }, [3, true, false]],
  ['a line that failed exclusively', { from: 2, to: 3, failures: 1 }, [3, true, true]],
])('decides attempts, exclusive send and suspicion of poison for %s', (_what, range, expected) => {
  const { attempts, exclusive, mayBePoison } = suspicionOf(range);
  expect([attempts, exclusive, mayBePoison]).toEqual(expected);
});
