import fc from 'fast-check';
import { OpenRanges } from '../../../core/chunks/open-ranges';

describe('open ranges', () => {
  it('are taken from the front, and what chunks leave goes back to its place', () => {
    const open = new OpenRanges([
      { from: 50, to: 60 },
      { from: 0, to: 40 },
    ]);
    expect(open.take(10)).toEqual({ from: 0, to: 10 });
    expect(open.take(10)).toEqual({ from: 10, to: 20 });
    open.giveBack({ from: 14, to: 20 });
    open.giveBack({ from: 3, to: 10 });
    expect(open.toArray().map(({ from, to }) => [from, to])).toEqual([
      [3, 10],
      [14, 40],
      [50, 60],
    ]);
    expect(open.take(100)).toEqual({ from: 3, to: 10 });
  });

  it('keep a failed range whole and apart from its neighbours', () => {
    const open = new OpenRanges([{ from: 0, to: 12 }]);
    open.take(4);
    const suspects = open.take(4);
    if (suspects === null) throw new Error('nothing open');
    open.giveBackFailed(suspects);
    open.giveBack({ from: 0, to: 4 });
    expect(open.toArray()).toEqual([
      { from: 0, to: 4 },
      { from: 4, to: 6, failures: 0 },
      { from: 6, to: 8, failures: 0 },
      { from: 8, to: 12 },
    ]);
    open.take(100);
    // The range stays whole even for a chunk of 1.
    expect(open.take(1)).toEqual({ from: 4, to: 6, failures: 0 });
  });

  it('isolate a line that kills its worker and count three crashes, at any position', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.nat(),
        fc.integer({ min: 1, max: 64 }),
        (total, at, size) => {
          const killer = at % total;
          const open = new OpenRanges([{ from: 0, to: total }]);
          const answered = new Set<number>();
          let deathsAlone = 0;
          for (let rounds = 0; !open.isEmpty && deathsAlone < 3; rounds++) {
            expect(rounds).toBeLessThan(1_000);
            const range = open.take(size);
            if (range === null) throw new Error('nothing open');
            const kills = range.from <= killer && killer < range.to;
            if (kills && range.failures !== undefined && range.to - range.from === 1) deathsAlone++;
            if (kills) open.giveBackFailed(range);
            else for (let i = range.from; i < range.to; i++) answered.add(i);
          }
          expect(deathsAlone).toBe(3);
          expect(open.toArray()).toContainEqual({ from: killer, to: killer + 1, failures: 3 });
        },
      ),
    );
  });

  it('show the open positions of a range without taking them', () => {
    const open = new OpenRanges([
      { from: 0, to: 10 },
      { from: 20, to: 30 },
      { from: 40, to: 50 },
    ]);
    const expected = [
      { from: 5, to: 10 },
      { from: 20, to: 30 },
    ];
    expect(open.within({ from: 5, to: 40 })).toEqual(expected);
    expect(open.within({ from: 10, to: 20 })).toEqual([]);
    expect(open.remaining).toBe(30);
  });
});
