import fc from 'fast-check';
import { HeapEntry, IndexedHeap } from '../../../../core/dispatch/queue/indexed-heap';

it('an indexed heap always has the smallest entry first, whatever entries change', () => {
  const step = fc.record({
    do: fc.constantFrom('push', 'push', 'remove', 'update', 'pop'),
    pick: fc.nat(19),
    key: fc.constantFrom(0, 1, 2, 3, Infinity),
    order: fc.nat(100),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const heap = new IndexedHeap<HeapEntry>();
      const all = Array.from({ length: 20 }, () => new HeapEntry());
      for (const { do: what, pick, key, order } of steps) {
        const entry = what === 'pop' ? heap.first : all[pick]!;
        if (entry === undefined) continue;
        const isIn = entry.slot !== -1;
        if (what === 'push' && !isIn) heap.push(Object.assign(entry, { key, order }));
        if (what === 'update' && isIn) heap.update(Object.assign(entry, { key, order }));
        if ((what === 'remove' || what === 'pop') && isIn) heap.remove(entry);
        const inside = all.filter(({ slot }) => slot !== -1);
        const [least] = inside.sort((a, b) => a.key - b.key || a.order - b.order);
        const found = `${heap.size} ${heap.first?.key} ${heap.first?.order}`;
        expect(found).toBe(`${inside.length} ${least?.key} ${least?.order}`);
      }
    }),
  );
});

it('an indexed heap keeps its order when it grows', () => {
  const heap = new IndexedHeap<HeapEntry>();
  const keys = Array.from({ length: 300 }, (_, i) => (i * 7_919) % 300);
  for (const key of keys) heap.push(Object.assign(new HeapEntry(), { key }));
  const popped: number[] = [];
  for (let first = heap.first; first !== undefined; first = heap.first) {
    popped.push(first.key);
    heap.remove(first);
  }
  expect(popped).toEqual(keys.sort((a, b) => a - b));
});
