import fc from 'fast-check';
import { inSlices, uncovered } from '../../../core/journal/coverage';

const span = fc.tuple(fc.nat(60), fc.nat(60)).map(([a, b]) => ({ from: a, to: a + b }));

it('finds exactly the positions that no range covers, merged and in order', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 10 }), fc.nat(80), (ranges, entries) => {
      const positions = Array.from({ length: entries }, (_, i) => i).filter(
        (i) => !ranges.some((range) => range.from <= i && i < range.to),
      );
      const holes = uncovered(ranges, entries);
      expect(holes.flatMap(({ from, to }) => sequence(from, to))).toEqual(positions);
      holes.slice(1).forEach((hole, i) => expect(hole.from).toBeGreaterThan(holes[i]!.to));
    }),
  );
});

it('cuts ranges into slices that hold every position once and stay within their size', () => {
  fc.assert(
    fc.property(
      fc.array(span, { maxLength: 8 }),
      fc.integer({ min: 1, max: 30 }),
      (ranges, max) => {
        const slices = [...inSlices(ranges, max)];
        const flat = slices.flat().flatMap(({ from, to }) => sequence(from, to));
        expect(flat).toEqual(ranges.flatMap(({ from, to }) => sequence(from, to)));
        for (const slice of slices) {
          const size = slice.reduce((sum, { from, to }) => sum + to - from, 0);
          expect(size).toBeGreaterThan(0);
          expect(size).toBeLessThanOrEqual(max);
        }
      },
    ),
  );
});

function sequence(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
