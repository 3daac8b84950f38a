import fc from 'fast-check';
import { safeModelNames } from '../../../core/names/safe-model';

const awkward = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.string({ unit: 'binary', maxLength: 130 }),
  fc.constantFrom('', '.', '..', 'a', 'A', 'a/b', 'a_b', 'a:b', 'x'.repeat(100), 'x'.repeat(101)),
);

describe('safe model names', () => {
  it('keep the characters of a path segment and replace all others', () => {
    expect(safeModelNames(['org/model-A:1', 'llama-3.1_8b'])).toEqual(
      new Map([
        ['org/model-A:1', 'org_model-A_1'],
        ['llama-3.1_8b', 'llama-3.1_8b'],
      ]),
    );
  });

  it.each([[['a/b', 'a:b']], [['GPT', 'gpt']], [['']], [['.']], [['..']], [['é'.repeat(101)]]])(
    'carry a hash if %j would break a rule',
    (models) => {
      const names = [...safeModelNames(models).values()];
      expect(new Set(names.map((n) => n.toLowerCase())).size).toBe(models.length);
      for (const name of names) expect(name).toMatch(/^[A-Za-z0-9._-]{0,83}-[0-9a-f]{16}$/);
    },
  );

  it('never give a hashed name that equals a plain one', () => {
    const [, hashed = ''] = [...safeModelNames(['a/b', 'a:b']).values()];
    const names = [...safeModelNames(['a/b', 'a:b', hashed]).values()];
    expect(new Set(names).size).toBe(3);
    expect(names).toContain(hashed);
  });

  it('are valid, distinct after case folding, and independent of the order of models', () => {
    fc.assert(
      fc.property(fc.array(awkward, { maxLength: 12 }), (models) => {
        const names = safeModelNames(models);
        expect(new Set(names.keys())).toEqual(new Set(models));
        const folded = [...names.values()].map((name) => name.toLowerCase());
        expect(new Set(folded).size).toBe(names.size);
        for (const name of names.values()) {
          expect(name).toMatch(/^[A-Za-z0-9._-]{1,100}$/);
          expect(['.', '..']).not.toContain(name);
        }
        expect(safeModelNames([...models].reverse())).toEqual(names);
      }),
    );
  });
});
