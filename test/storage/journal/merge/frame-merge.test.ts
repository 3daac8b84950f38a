import fc from 'fast-check';
import { CursorHeap } from '../../../../storage/journal/merge/cursor-heap';
import { mostOpen } from '../../../../storage/journal/merge/frame-merge';
import type { FrameSource } from '../../../../storage/journal/merge/frame-source';

const span = fc.tuple(fc.nat(30), fc.nat(10)).map(([first, length]) => {
  return { firstOffset: first, lastOffset: first + length } as FrameSource;
});

it('counts the sources open at once as the most that meet in one offset', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 12 }), (spans) => {
      const meeting = Array.from(
        { length: 50 },
        (_, at) => spans.filter((s) => s.firstOffset <= at && at <= s.lastOffset).length,
      );
      expect(mostOpen(spans)).toBe(Math.max(0, ...meeting));
    }),
  );
});

it('orders items by offset while the top of the heap changes, leaves and returns', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uniqueArray(fc.nat(40)), { maxLength: 9 }),
      fc.nat(3),
      (lists, turn) => {
        const left = lists
          .filter((offsets) => offsets.length > 0)
          .map((offsets) => [...offsets].sort((a, b) => a - b))
          .sort((a, b) => a[0]! - b[0]!);
        const offsets = Float64Array.from(left.map((own) => own.shift()!));
        const heap = new CursorHeap({ offsets, heap: new Uint32Array(offsets.length) });
        const seen: number[] = [];
        for (let top = heap.top; top !== -1; top = heap.top) {
          const others = [...offsets].filter((at, cursor) => cursor !== top && at !== Infinity);
          expect(heap.secondOffset).toBe(Math.min(...others));
          seen.push(offsets[top]!);
          const next = left[top]!.shift();
          const leaves = next === undefined || seen.length % 4 === turn;
          if (leaves) heap.removeTop();
          offsets[top] = next ?? Infinity;
          if (next === undefined) continue;
          if (leaves) heap.add(top);
          else heap.settleTop();
        }
        expect(seen).toEqual(lists.flat().sort((a, b) => a - b));
      },
    ),
  );
});
