import { priorityOf } from '../../../core/chunks/priority';

describe('priorityOf', () => {
  it.each([
    [10_000, null, 3],
    [10_000, 1_000, 4],
    [8_000, 1_000, 3],
    [2_000, 1_000, 3],
    [1_999, 1_000, 2],
    [-1, 0, 2],
    [10_000, 0, 4],
  ])('%d ms left for %s ms of work is %d', (leftMs, remainingMs, expected) => {
    expect(priorityOf({ nowMs: 5, deadlineMs: 5 + leftMs, remainingMs })).toBe(expected);
  });
});
