import fc from 'fast-check';
import { CursorHeap } from '../../activities/finalize/cursor-heap';
import { mostOpen } from '../../activities/finalize/merge-frames';
import type { FrameSource } from '../../activities/finalize/seal-cursor';

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

test('the heap gives items by offset, then by rank, while its top moves on', () => {
  fc.assert(
    fc.property(fc.array(fc.uniqueArray(fc.nat(40)), { maxLength: 9 }), (lists) => {
      const items = lists
        .map((offsets, rank) => ({ rank, left: [...offsets].sort((a, b) => a - b), offset: 0 }))
        .filter(({ left }) => left.length > 0);
      for (const item of items) item.offset = item.left.shift()!;
      const heap = new CursorHeap(items);
      const seen: [number, number][] = [];
      for (let top = heap.top; top !== undefined; top = heap.top) {
        seen.push([top.offset, top.rank]);
        const next = top.left.shift();
        if (next === undefined) {
          heap.removeTop();
        } else {
          top.offset = next;
          heap.settleTop();
        }
      }
      const all = lists.flatMap((offsets, rank) => offsets.map((o): [number, number] => [o, rank]));
      expect(seen).toEqual(all.sort((a, b) => a[0] - b[0] || a[1] - b[1]));
    }),
  );
});
