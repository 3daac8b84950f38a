import fc from 'fast-check';
import { createIdSet } from '../../../core/openai/id-set';

describe('a set of ids', () => {
  it('contains exactly what was added, including lone surrogates and lookalikes', () => {
    const id = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'ÿ', '\ud800', '\udc00', '\0', 'é'), maxLength: 4 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
    );
    fc.assert(
      fc.property(fc.array(id, { maxLength: 200 }), fc.nat(2 ** 32 - 1), (ids, seed) => {
        const set = createIdSet(seed);
        const oracle = new Set<string>();
        for (const one of ids) {
          expect(set.add(one)).toBe(!oracle.has(one));
          oracle.add(one);
        }
        expect(set.size).toBe(oracle.size);
      }),
    );
  });

  it('distinguishes 300,000 ids, which 32-bit hashes would not', () => {
    const set = createIdSet(1);
    const taken = [];
    for (let i = 0; i < 300_000; i++) if (!set.add(`request-${i}`)) taken.push(i);
    expect(taken).toEqual([]);
  });

  it('stays exact while it grows', () => {
    const set = createIdSet(1);
    for (let i = 0; i < 50_000; i++) if (!set.add(`request-${i}`)) throw new Error(`lost at ${i}`);
    for (let i = 0; i < 50_000; i++) if (set.add(`request-${i}`)) throw new Error(`again at ${i}`);
    expect(set.size).toBe(50_000);
    expect(set.add('x'.repeat(100_000))).toBe(true);
    expect(set.add('x'.repeat(100_000))).toBe(false);
  });
});
