import fc from 'fast-check';
import { CursorHeap } from '../../../activities/finalize/cursor-heap';
import { mostOpen } from '../../../activities/finalize/merge-frames';
import type { FrameSource } from '../../../activities/finalize/seal-cursor';

const span = fc.tuple(fc.nat(30), fc.nat(10)).map(([first, length]) => {
  return { firstOffset: first, lastOffset: first + length } as FrameSource;
});

test('the number of sources open at once is the most that meet in one offset', () => {
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

test('the heap gives items by offset, while its top moves on, leaves and comes back', () => {
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
