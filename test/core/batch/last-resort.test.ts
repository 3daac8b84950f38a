import { isRestartedInVain, mustDescribe } from '../../../core/batch/last-resort';

const NOW = 1_000_000;

it.each([
  [3, NOW - 5, 'closed', true],
  [4, NOW - 599, 'closed', true],
  [2, NOW - 5, 'closed', false],
  [3, NOW - 600, 'closed', false],
  [3, null, 'closed', false],
  [9, NOW - 5, 'running', false],
  // A missing workflow means that Temporal has lost its database, so a restart may help.
  [9, NOW - 5, 'missing', false],
] as const)('%s restarts, the last at %s, now %s: in vain is %s', (restarts, at, state, inVain) => {
  expect(isRestartedInVain({ restarts, restartedAtSec: at }, state, NOW)).toBe(inVain);
});

describe('a workflow', () => {
  const row = {
    ...{ seq: 7, isListed: true, createdAtSec: NOW - 900, startedAtSec: NOW - 900 },
    ...{ expiresAtSec: NOW + 900, cancelUntaken: false },
  };
  const at = { nowSec: NOW, cycle: 0, graceSec: 60 };

  it.each([
    ['is not checked while visibility lists it', row, false],
    ['that visibility does not list is checked', { ...row, isListed: false }, true],
    [
      'that has just started is not checked, because visibility may lag behind',
      { ...row, isListed: false, startedAtSec: NOW - 9 },
      false,
    ],
    ['that never started is checked', { ...row, isListed: false, startedAtSec: null }, true],
    ['that has not received a cancel is checked', { ...row, cancelUntaken: true }, true],
    ['is not checked within its grace', { ...row, expiresAtSec: NOW - 59 }, false],
    ['that is overdue is checked', { ...row, expiresAtSec: NOW - 60 }, true],
  ])('%s', (_what, one, suspect) => {
    expect(mustDescribe(one, at)).toBe(suspect);
  });

  it('is checked once in 30 cycles even if visibility lists it', () => {
    const cycles = Array.from({ length: 30 }, (_, cycle) => mustDescribe(row, { ...at, cycle }));
    expect(cycles.filter(Boolean)).toHaveLength(1);
  });
});
