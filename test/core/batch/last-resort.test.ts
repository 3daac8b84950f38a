import { isRestartedInVain, isSuspect } from '../../../core/batch/last-resort';

const NOW = 1_000_000;

it.each([
  [3, NOW - 5, 'closed', true],
  [4, NOW - 599, 'closed', true],
  [2, NOW - 5, 'closed', false],
  [3, NOW - 600, 'closed', false],
  [3, null, 'closed', false],
  [9, NOW - 5, 'running', false],
  // A server that lost its database is no fault of the batch.
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
    ['is not asked for while visibility shows it', row, false],
    ['that visibility does not show is asked for', { ...row, isListed: false }, true],
    [
      'that has just begun may not be shown yet',
      { ...row, isListed: false, startedAtSec: NOW - 9 },
      false,
    ],
    ['that never began is asked for', { ...row, isListed: false, startedAtSec: null }, true],
    ['that has not taken a cancel is asked for', { ...row, cancelUntaken: true }, true],
    ['may take its grace', { ...row, expiresAtSec: NOW - 59 }, false],
    ['that is overdue is asked for', { ...row, expiresAtSec: NOW - 60 }, true],
  ])('%s', (_what, one, suspect) => {
    expect(isSuspect(one, at)).toBe(suspect);
  });

  it('is checked once in 30 cycles whatever visibility shows', () => {
    const cycles = Array.from({ length: 30 }, (_, cycle) => isSuspect(row, { ...at, cycle }));
    expect(cycles.filter(Boolean)).toHaveLength(1);
  });
});
