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
        const items = lists
          .map((offsets) => ({ left: [...offsets].sort((a, b) => a - b), offset: 0 }))
          .filter(({ left }) => left.length > 0);
        for (const item of items) item.offset = item.left.shift()!;
        const heap = new CursorHeap(items);
        const seen: number[] = [];
        for (let top = heap.top; top !== undefined; top = heap.top) {
          seen.push(top.offset);
          const next = top.left.shift();
          const leaves = next === undefined || seen.length % 4 === turn;
          if (leaves) heap.removeTop();
          if (next === undefined) continue;
          top.offset = next;
          if (leaves) heap.add(top);
          else heap.settleTop();
        }
        expect(seen).toEqual(lists.flat().sort((a, b) => a - b));
      },
    ),
  );
});
