import fc from 'fast-check';
import { createIdHasher } from '../../../core/openai/id-hash';
import { createIdSet } from '../../../core/openai/id-set';

/** A set that is given ids instead of hashes. */
function openSet(seed: number) {
  const set = createIdSet();
  const hash = createIdHasher(seed);
  return {
    add: (id: string) => set.add(hash(id), 0),
    get size() {
      return set.size;
    },
  };
}

describe('a set of ids', () => {
  it('contains exactly what was added, including lone surrogates and lookalikes', () => {
    const id = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'ÿ', '\ud800', '\udc00', '\0', 'é'), maxLength: 4 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
    );
    fc.assert(
      fc.property(fc.array(id, { maxLength: 200 }), fc.nat(2 ** 32 - 1), (ids, seed) => {
        const set = openSet(seed);
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
    const set = openSet(1);
    const taken = [];
    for (let i = 0; i < 300_000; i++) if (!set.add(`request-${i}`)) taken.push(i);
    expect(taken).toEqual([]);
  });

  it('stays exact while it grows', () => {
    const set = openSet(1);
    for (let i = 0; i < 50_000; i++) if (!set.add(`request-${i}`)) throw new Error(`lost at ${i}`);
    for (let i = 0; i < 50_000; i++) if (set.add(`request-${i}`)) throw new Error(`again at ${i}`);
    expect(set.size).toBe(50_000);
    expect(set.add('x'.repeat(100_000))).toBe(true);
    expect(set.add('x'.repeat(100_000))).toBe(false);
  });

  it('contains the hash that looks like a free place, and those that are next to each other', () => {
    const set = createIdSet();
    const words = Uint32Array.of(0, 0, 0, 0, 0, 1, 0xffffffff, 2, 3, 0xffffffff, 2, 4);
    for (const isNew of [true, false]) {
      expect([0, 3, 6, 9].map((at) => set.add(words, at))).toEqual([isNew, isNew, isNew, isNew]);
    }
    expect(set.size).toBe(4);
  });
});
