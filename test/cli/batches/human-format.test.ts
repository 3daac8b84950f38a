import {
  humanBytes,
  relativeTime,
  humanDuration,
  printable,
  shortened,
} from '../../../cli/batches/human-format';

describe('formatting for people', () => {
  it.each([
    [0, '0.0 s'],
    [9_940, '9.9 s'],
    [9_960, '10 s'],
    [59_600, '1 min'],
    [125_000, '2 min 05 s'],
    [3_599_600, '1 h'],
    [12_000_000, '3 h 20 min'],
    [187_200_000, '2 d 4 h'],
  ])('shows a duration of %i ms as %s', (ms, shown) => expect(humanDuration(ms)).toBe(shown));

  it.each([
    [0, '0 bytes'],
    [999, '999 bytes'],
    [1_000, '1.0 kB'],
    [999_960, '1.0 MB'],
    [209_715_200, '209.7 MB'],
  ])('shows a size of %i bytes as %s', (bytes, shown) => expect(humanBytes(bytes)).toBe(shown));

  it.each([
    [1_000, 'now'],
    [970, '30 s ago'],
    [1_000 + 7_200, 'in 2 h'],
    [1_000 + 172_800, 'in 2 d'],
  ])('shows second %i, seen from second 1000, as %s', (atSec, shown) =>
    expect(relativeTime(atSec, 1_000_000)).toBe(shown),
  );

  it('replaces control characters in untrusted text', () => {
    expect(printable('a\u001b[31m\r\nb\u202ec\u0007')).toBe('a?[31m b?c?');
    expect(shortened('abcdef', 4)).toBe('abc…');
  });
});
