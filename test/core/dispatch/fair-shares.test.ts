import fc from 'fast-check';
import { FairShares, Share } from '../../../core/dispatch/fair-shares';

const WEIGHTS = [0.001, 0.5, 1, 1, 3, 1_000];

describe('fair shares', () => {
  it('differ by at most one weighted turn each while both wait', () => {
    const step = fc.record({
      do: fc.constantFrom('serve', 'serve', 'serve', 'join', 'leave'),
      pick: fc.nat(WEIGHTS.length - 1),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const shares = new FairShares();
        const all = WEIGHTS.map((weight) => new Share(weight));
        // Turns of a pair since both began to wait together, divided by their weights.
        const since = new Map<string, [number, number]>();
        const forget = (i: number) => {
          for (const key of since.keys()) if (key.split(',').includes(String(i))) since.delete(key);
        };
        for (const { do: what, pick } of steps) {
          const share = all[pick]!;
          if (what === 'join' && share.at === -1) shares.join(share);
          if (what === 'leave' && share.at !== -1) {
            shares.leave(share);
            forget(pick);
          }
          const { first } = shares;
          expect(first === undefined).toBe(all.every(({ at }) => at === -1));
          if (what !== 'serve' || first === undefined) continue;
          shares.serve(first);
          const served = all.indexOf(first);
          for (let i = 0; i < all.length; i++) {
            for (let j = i + 1; j < all.length; j++) {
              if (all[i]!.at === -1 || all[j]!.at === -1) continue;
              const key = `${i},${j}`;
              const [a, b] = since.get(key) ?? [0, 0];
              since.set(key, [
                a + (served === i ? 1 / WEIGHTS[i]! : 0),
                b + (served === j ? 1 / WEIGHTS[j]! : 0),
              ]);
            }
          }
          for (const [key, [a, b]] of since) {
            const [i, j] = key.split(',').map(Number) as [number, number];
            const bound = 1 / WEIGHTS[i]! + 1 / WEIGHTS[j]!;
            expect(Math.abs(a - b)).toBeLessThanOrEqual(bound * (1 + 1e-9));
          }
        }
      }),
    );
  });

  it('hold for a competitor that waits for one turn at a time', () => {
    const shares = new FairShares();
    const [heavy, light] = [new Share(3), new Share(1)];
    shares.join(heavy);
    shares.join(light);
    const turns = { heavy: 0, light: 0 };
    for (let i = 0; i < 400; i++) {
      const next = shares.first!;
      shares.serve(next);
      turns[next === heavy ? 'heavy' : 'light']++;
      // Leaves and joins again at once, like a chunk that requests its next permit.
      shares.leave(next);
      shares.join(next);
    }
    expect(turns).toEqual({ heavy: 300, light: 100 });
  });

  it('charge nothing for leaving without a turn, and forget idle competitors', () => {
    const shares = new FairShares();
    const [a, b, c] = [new Share(1), new Share(1), new Share(1)];
    for (const share of [a, b, c]) shares.join(share);
    shares.leave(b);
    expect(shares.isSpent(b)).toBe(true);
    shares.serve(a);
    shares.leave(a);
    expect(shares.isSpent(a)).toBe(false);
    for (let i = 0; i < 3; i++) shares.serve(c);
    expect(shares.isSpent(a)).toBe(true);
    shares.join(a);
    // There is no credit for the time in which it did not wait.
    expect(a.start).toBeGreaterThanOrEqual(2);
  });
});
