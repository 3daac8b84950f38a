import { FloorShares } from '../../../../core/dispatch/pool/floor-shares';
import { BAND } from '../../../../core/dispatch/queue/band';

const FLOOR = 0.05;

/** Ten dispatches of cost 1 in each second; returns how many of them sheddable requests got by their floor. */
function dispatch(shares: FloorShares, { fromSec = 0, seconds = 1, isWaiting = true }): number {
  let served = 0;
  for (let i = 0; i < 10 * seconds; i++) {
    shares.advance(1_000 * fromSec + 100 * i);
    const isStarved = shares.isStarved(BAND.sheddable, { isWaiting, floor: FLOOR });
    served += Number(isStarved);
    shares.add(isStarved ? BAND.sheddable : BAND.standard, 1);
  }
  return served;
}

describe('a floor', () => {
  it('is given evenly to a band that always waits', () => {
    const shares = new FloorShares();
    const served = [0, 20, 40, 60].map((fromSec) => dispatch(shares, { fromSec, seconds: 20 }));
    for (const one of served) expect(one).toBeCloseTo(FLOOR * 200, -0.5);
  });

  it('owes nothing for the time before the band waited', () => {
    const shares = new FloorShares();
    dispatch(shares, { seconds: 120, isWaiting: false });
    expect(dispatch(shares, { fromSec: 120, seconds: 2 })).toBeLessThanOrEqual(2);
    expect(dispatch(shares, { fromSec: 122, seconds: 20 })).toBeGreaterThanOrEqual(8);
  });

  it('owes nothing more for that after any time without dispatches', () => {
    for (let ms = 100; ms < 60_000; ms += 137) {
      const shares = new FloorShares();
      shares.advance(1);
      for (let i = 0; i < 3; i++) shares.add(BAND.standard, 1);
      const waits = { isWaiting: true, floor: FLOOR };
      const before = shares.isStarved(BAND.sheddable, waits);
      shares.advance(1 + ms);
      expect([before, shares.isStarved(BAND.sheddable, waits)]).toEqual([false, false]);
    }
  });

  it('is not due in a short burst after the band was well served, and is in a long one', () => {
    const shares = new FloorShares();
    shares.isStarved(BAND.sheddable, { isWaiting: true, floor: FLOOR });
    for (let ms = 0; ms < 20_000; ms += 100) {
      shares.advance(ms);
      shares.add(BAND.sheddable, 1);
    }
    expect(dispatch(shares, { fromSec: 20, seconds: 20 })).toBe(0);
    dispatch(shares, { fromSec: 40, seconds: 80 });
    expect(dispatch(shares, { fromSec: 120, seconds: 20 })).toBeGreaterThanOrEqual(8);
  });

  it('is never due if nothing of the band waits', () => {
    const shares = new FloorShares();
    expect(dispatch(shares, { seconds: 60, isWaiting: false })).toBe(0);
  });
});
