import fc from 'fast-check';
import { LineChecksum } from '../../../activities/finalize/line-checksum';

const tallyOf = (offsets: Iterable<number>): LineChecksum => {
  const tally = new LineChecksum();
  for (const offset of offsets) tally.add(offset);
  return tally;
};

const OFFSETS = fc.uniqueArray(fc.nat(2 ** 43), { maxLength: 40 });

it('gives the same lines the same checksum in any order', () => {
  const property = fc.property(OFFSETS, fc.infiniteStream(fc.nat()), (offsets, ranks) => {
    const shuffled = offsets
      .map((offset) => ({ offset, rank: ranks.next().value as number }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ offset }) => offset);
    expect(tallyOf(shuffled).equals(tallyOf(offsets))).toBe(true);
  });
  fc.assert(property);
});

it('gives different lines different checksums', () => {
  const property = fc.property(OFFSETS, OFFSETS, (some, others) => {
    const isSame = some.length === others.length && some.every((one) => others.includes(one));
    expect(tallyOf(some).equals(tallyOf(others))).toBe(isSame);
  });
  fc.assert(property);
});

it.each([
  ['the same number and sum', [10, 40], [20, 30]],
  ['the same sum and sum of squares', [1, 5, 6], [2, 3, 7]],
  ['the same low 32 bits', [5], [5 + 2 ** 32]],
  ['swapped halves of 32 bits', [3 * 2 ** 32 + 1], [2 ** 32 + 3]],
  ['one line and no line', [0], []],
])('distinguishes sets of offsets with %s', (_what, some, others) => {
  expect(tallyOf(some).equals(tallyOf(others))).toBe(false);
});
