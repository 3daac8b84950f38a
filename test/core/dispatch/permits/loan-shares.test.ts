import fc from 'fast-check';
import {
  loanShares,
  wholeShares,
  type Borrower,
  type LoanClaim,
} from '../../../../core/dispatch/permits/loan-shares';

const equal = () => 1;

function claim(tenant: string, batch: string, held: number, waits: boolean): LoanClaim {
  return { tenant, batch, held, waits };
}

function borrower(...claims: LoanClaim[]): Borrower {
  return { claims, most: Infinity };
}

describe('loans', () => {
  it('divide one batch equally among the processes that run it', () => {
    const both = [borrower(claim('t', 'b', 0, true)), borrower(claim('t', 'b', 7, true))];
    expect(loanShares(10, both, equal)).toEqual([5, 5]);
  });

  it('go to tenants by weight, wherever their batches run', () => {
    const first = borrower(claim('light', 'a', 0, true));
    const second = borrower(claim('heavy', 'b', 0, true), claim('light', 'c', 0, true));
    const weightOf = (tenant: string) => (tenant === 'heavy' ? 3 : 1);
    // 9 for the heavy one; the light one has 3, one half for each of its batches.
    expect(loanShares(12, [first, second], weightOf)).toEqual([1.5, 10.5]);
  });

  it('leave those who need less what they hold, and share the rest', () => {
    const idle = borrower(claim('t', 'a', 2, false));
    const busy = borrower(claim('u', 'b', 0, true));
    expect(loanShares(10, [idle, busy], equal)).toEqual([2, 8]);
  });

  it('give nobody more than it can use at most', () => {
    const paused = { ...borrower(claim('t', 'a', 1, true)), most: 1 };
    const busy = borrower(claim('t', 'a', 0, true));
    expect(loanShares(10, [paused, busy], equal)).toEqual([1, 9]);
  });

  const claims = fc.array(
    fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      batch: fc.constantFrom('x', 'y'),
      held: fc.nat(8),
      waits: fc.boolean(),
    }),
    { maxLength: 5 },
  );
  const borrowers = fc.array(
    fc.record({ claims, most: fc.oneof(fc.nat(20), fc.constant(Infinity)) }),
    { minLength: 1, maxLength: 5 },
  );
  const weights = fc.record({
    a: fc.integer({ min: 1, max: 9 }),
    b: fc.integer({ min: 1, max: 9 }),
    c: fc.integer({ min: 1, max: 9 }),
  });

  it('never exceed the limit, and use all of it while anybody can use more', () => {
    fc.assert(
      fc.property(fc.nat(50), borrowers, weights, (limit, all, weight) => {
        const shares = loanShares(limit, all, (tenant) => weight[tenant as 'a']);
        const total = shares.reduce((sum, one) => sum + one, 0);
        expect(total).toBeLessThanOrEqual(limit + 1e-6);
        shares.forEach((share, at) => expect(share).toBeLessThanOrEqual(usable(all[at]) + 1e-6));
        const wanted = all.reduce((sum, one) => sum + usable(one), 0);
        expect(total).toBeGreaterThanOrEqual(Math.min(limit, wanted) - 1e-6);
      }),
      { numRuns: 500 },
    );
  });

  it('are rounded without losing or adding a permit', () => {
    const shares = fc.array(fc.double({ min: 0, max: 20, noNaN: true }), { minLength: 1 });
    fc.assert(
      fc.property(
        shares,
        fc.infiniteStream(fc.double({ min: -2, max: 2, noNaN: true })),
        (all, credits) => {
          const whole = wholeShares(
            all,
            all.map(() => credits.next().value),
          );
          const total = all.reduce((sum, one) => sum + one, 0);
          const rounded = whole.reduce((sum, one) => sum + one, 0);
          expect(rounded).toBe(Math.floor(total + 1e-6));
          whole.forEach((one, at) => expect(Math.abs(one - (all[at] ?? 0))).toBeLessThan(1 + 1e-6));
        },
      ),
    );
  });
});

function usable(one: Borrower | undefined): number {
  const wants = (one?.claims ?? []).reduce(
    (sum, { held, waits }) => sum + (waits ? Infinity : held),
    0,
  );
  return Math.min(wants, one?.most ?? 0);
}
