import fc from 'fast-check';
import { cutIntoParts } from '../../../core/delegation/cut';
import type { Range } from '../../../core/range';

const limits = { maxLines: 50_000, maxBytes: 1e9, totalBytes: 0 };

/** Disjoint ranges in order, some of them empty, from gaps and lengths. */
const openRanges = fc
  .array(fc.tuple(fc.nat({ max: 5 }), fc.nat({ max: 30 })), { maxLength: 8 })
  .map((pairs) => {
    let at = 0;
    return pairs.map(([gap, length]): Range => {
      const from = at + gap;
      at = from + length;
      return { from, to: at };
    });
  });

const positions = (ranges: readonly Range[]): number[] =>
  ranges.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i));

describe('parts', () => {
  it('hold each open line once, in equal numbers, and no more than allowed', () => {
    fc.assert(
      fc.property(openRanges, fc.integer({ min: 1, max: 20 }), (open, maxLines) => {
        const parts = cutIntoParts(open, { ...limits, maxLines });
        const lines = positions(open);
        expect(parts).toHaveLength(Math.ceil(lines.length / maxLines));
        const held = parts.map(({ from, to }) => lines.filter((line) => line >= from && line < to));
        expect(held.flat()).toEqual(lines);
        const sizes = held.map((part) => part.length);
        expect(parts.map((part) => part.lines)).toEqual(sizes);
        if (sizes.length === 0) return;
        expect(Math.max(...sizes)).toBeLessThanOrEqual(maxLines);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('begin and end with an open line', () => {
    fc.assert(
      fc.property(openRanges, fc.integer({ min: 1, max: 20 }), (open, maxLines) => {
        const lines = new Set(positions(open));
        for (const { from, to } of cutIntoParts(open, { ...limits, maxLines })) {
          expect([lines.has(from), lines.has(to - 1)]).toEqual([true, true]);
        }
      }),
    );
  });

  it('are more if the bytes of fewer would exceed the limit', () => {
    const sized = { ...limits, maxBytes: 100, totalBytes: 250 };
    expect(cutIntoParts([{ from: 0, to: 10 }], sized).map((part) => part.lines)).toEqual([3, 3, 4]);
  });

  it('are never more than lines', () => {
    const sized = { ...limits, maxBytes: 1, totalBytes: 250 };
    expect(cutIntoParts([{ from: 4, to: 6 }], sized)).toEqual([
      { from: 4, to: 5, lines: 1 },
      { from: 5, to: 6, lines: 1 },
    ]);
  });
});
