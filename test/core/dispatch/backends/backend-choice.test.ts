import fc from 'fast-check';
import type { Candidate } from '../../../../core/dispatch/backends/backend-choice';
import { chooseBackend, comparedLimits } from '../../../../core/dispatch/backends/backend-choice';

const backend = (id: string, over: Partial<Candidate> = {}): Candidate => {
  const idle = { inFlight: 0, limit: 8, match: 0 };
  return { id, isReady: true, hasRoom: true, ...idle, ...over };
};
const choose = (candidates: Candidate[], key = 1, tried = new Set<string>()) =>
  chooseBackend(candidates, { loadBound: 1.25, promptBlocks: 4, key, tried })?.id ?? null;

describe('the limits to compare backends by', () => {
  it('are the means of limits that may be those of equal backends', () => {
    expect(comparedLimits([29, 36, 31])).toEqual([32, 32, 32]);
  });

  it('are those of each backend if they differ much', () => {
    expect(comparedLimits([64, 24])).toEqual([64, 24]);
    expect(comparedLimits([60, 24, 68])).toEqual([64, 24, 64]);
  });
});

describe('the choice of a backend', () => {
  it('takes the longest match, as long as its load stays near the mean', () => {
    const pool = (inFlight: number) => [
      backend('a', { match: 9, inFlight }),
      backend('b', { match: 3, inFlight: 4 }),
      backend('c', { inFlight: 1 }),
    ];
    // Seven requests and the new one: 8 / 3 × 1.25 = 3.3, so four may be on one backend.
    expect(choose(pool(2))).toBe('a');
    expect(choose(pool(3))).toBe('a');
    // Nine and the new one: 4.2, so five.
    expect(choose(pool(5))).toBe('b');
  });

  it('keeps room on a backend for prompts of which it has at least half', () => {
    const chosen = (inFlight: number, match: number) =>
      chooseBackend(
        [backend('a', { match, inFlight }), backend('b', { inFlight: 12 - inFlight })],
        {
          ...{ loadBound: 1.8, promptBlocks: 10, key: 1 },
        },
      )?.id;
    // Twelve requests and the new one: the mean is 6.5. The bound is 1.8 × 6.5 = 11.7, so twelve may be there.
    expect(chosen(11, 5)).toBe('a');
    expect(chosen(12, 5)).toBe('b');
    // A quarter of 0.8 above the mean: 1.2 × 6.5 = 7.8, so eight.
    expect(chosen(7, 4)).toBe('a');
    expect(chosen(8, 4)).toBe('b');
  });

  it('takes the fewest requests in flight among those below their limits', () => {
    const pool = [
      backend('a', { inFlight: 8, limit: 8 }),
      backend('b', { inFlight: 10, limit: 20 }),
      backend('c', { inFlight: 9, limit: 30 }),
    ];
    expect(choose(pool)).toBe('c');
  });

  it('takes the least overload if all are at their limits', () => {
    const pool = [
      backend('a', { inFlight: 10, limit: 8 }),
      backend('b', { inFlight: 20, limit: 18 }),
    ];
    expect(choose(pool)).toBe('b');
  });

  it('keeps its affinity in an idle pool', () => {
    expect(choose([backend('a'), backend('b', { match: 1 }), backend('c'), backend('d')])).toBe(
      'b',
    );
  });

  it('sends equal keys to the same backend and spreads different ones', () => {
    const pool = ['a', 'b', 'c', 'd'].map((id) => backend(id));
    const counts = new Map<string | null, number>();
    for (let key = 0; key < 1_000; key++) {
      const chosen = choose(pool, key);
      expect(choose([...pool].reverse(), key)).toBe(chosen);
      // Without one of the others, the choice is the same.
      const others = pool.filter(({ id }) => id !== chosen).slice(1);
      expect(choose([...others, backend(chosen ?? '')], key)).toBe(chosen);
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    }
    for (const id of ['a', 'b', 'c', 'd']) expect(counts.get(id)).toBeGreaterThan(180);
  });

  it('never chooses a backend that is not ready, is full or was tried, and finds any other', () => {
    const candidate = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      isReady: fc.boolean(),
      hasRoom: fc.boolean(),
      inFlight: fc.nat(9),
      limit: fc.integer({ min: 1, max: 9 }),
      match: fc.nat(3),
    });
    const pool = fc.uniqueArray(candidate, { selector: ({ id }) => id });
    fc.assert(
      fc.property(
        pool,
        fc.nat(),
        fc.array(fc.constantFrom<string>('a', 'b')),
        (all, key, tried) => {
          const possible = all.filter(
            ({ id, isReady, hasRoom }) => isReady && hasRoom && !tried.includes(id),
          );
          const chosen = choose(all, key, new Set(tried));
          if (possible.length === 0) expect(chosen).toBeNull();
          else expect(possible.map(({ id }) => id)).toContain(chosen);
        },
      ),
    );
  });
});
