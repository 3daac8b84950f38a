import fc from 'fast-check';
import {
  BATCH_STATUSES,
  isTerminal,
  legalPredecessors,
  TERMINAL_STATUSES,
} from '../../../core/batch/status';
import { isLegalTransition } from '../../support/transitions';

describe('the transition table', () => {
  it('allows no change of a terminal status', () => {
    for (const from of TERMINAL_STATUSES) {
      for (const to of BATCH_STATUSES) expect(isLegalTransition(from, to)).toBe(false);
    }
  });

  it('never lets cancelling become completed, in any number of steps', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...BATCH_STATUSES)), (targets) => {
        let status: (typeof BATCH_STATUSES)[number] = 'cancelling';
        for (const to of targets) if (isLegalTransition(status, to)) status = to;
        expect(['cancelling', 'cancelled']).toContain(status);
      }),
    );
  });

  it('lists exactly the statuses that may precede another one', () => {
    for (const to of BATCH_STATUSES) {
      const expected = BATCH_STATUSES.filter((from) => isLegalTransition(from, to));
      expect(legalPredecessors(to)).toEqual(expected);
      expect(legalPredecessors(to).some(isTerminal)).toBe(false);
    }
    expect(legalPredecessors('completed')).toEqual(['finalizing']);
  });
});
