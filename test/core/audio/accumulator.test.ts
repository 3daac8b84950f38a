import fc from 'fast-check';
import { Accumulator } from '../../../core/audio/accumulator';

/** An accumulator with a clock of its own. */
function scene(mode: 'per_model' | 'single' = 'per_model') {
  let nowMs = 0;
  let timers: { atMs: number; run: () => void }[] = [];
  const flushed: { atMs: number; items: readonly string[] }[] = [];
  const accumulator = new Accumulator<string>({
    ...{ flushIntervalMs: 50, maxBatchSize: 8, mode },
    setTimer: (run, ms) => {
      const timer = { atMs: nowMs + ms, run };
      timers.push(timer);
      return () => void (timers = timers.filter((one) => one !== timer));
    },
    flush: (items) => void flushed.push({ atMs: nowMs, items }),
  });
  const pass = (ms: number): void => {
    for (const untilMs = nowMs + ms; nowMs < untilMs;) {
      nowMs++;
      for (const timer of timers.filter(({ atMs }) => atMs <= nowMs)) {
        timers = timers.filter((one) => one !== timer);
        timer.run();
      }
    }
  };
  return { accumulator, flushed, pass, timers: () => timers.length };
}

it('flushes a group 50 ms after its first item, and at once when it holds 8', () => {
  const { accumulator, flushed, pass, timers } = scene();
  accumulator.add('a', 'm');
  pass(49);
  accumulator.add('b', 'm');
  expect(flushed).toEqual([]);
  pass(1);
  expect(flushed).toEqual([{ atMs: 50, items: ['a', 'b'] }]);
  for (let i = 0; i < 8; i++) accumulator.add(`c${i}`, 'm');
  expect(flushed[1]?.items).toHaveLength(8);
  expect([accumulator.size, timers()]).toEqual([0, 0]);
});

it('keeps groups apart, and with one bucket flushes it when the group changes', () => {
  const apart = scene();
  for (const item of ['m1', 'n1', 'm2', 'n2']) apart.accumulator.add(item, item.slice(0, 1));
  apart.pass(50);
  expect(apart.flushed.map(({ items }) => items)).toEqual([
    ['m1', 'm2'],
    ['n1', 'n2'],
  ]);
  const single = scene('single');
  for (const [i, group] of ['m', 'm', 'n', 'm'].entries()) single.accumulator.add(`${i}`, group);
  expect(single.flushed.map(({ items }) => items)).toEqual([['0', '1'], ['2']]);
});

it('forgets an item that is taken out, and its timer with the last one', () => {
  const { accumulator, flushed, pass, timers } = scene();
  accumulator.add('a', 'm');
  expect([accumulator.remove('a'), accumulator.remove('a'), timers()]).toEqual([true, false, 0]);
  pass(100);
  expect(flushed).toEqual([]);
});

it('loses and repeats nothing, never holds more than 8 of a group, and none for more than 50 ms', () => {
  const step = fc.oneof(
    fc.record({ add: fc.constantFrom('m', 'n', 'o') }),
    fc.record({ pass: fc.integer({ min: 1, max: 70 }) }),
    fc.record({ remove: fc.nat(30) }),
    fc.constant({ flush: true }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, isSingle) => {
      const { accumulator, flushed, pass } = scene(isSingle ? 'single' : 'per_model');
      const added: string[] = [];
      const removed = new Set<string>();
      const addedAtMs = new Map<string, number>();
      let nowMs = 0;
      for (const one of steps) {
        if ('add' in one) {
          const item = `${one.add}${added.length}`;
          added.push(item);
          addedAtMs.set(item, nowMs);
          accumulator.add(item, one.add);
        } else if ('pass' in one) {
          pass(one.pass);
          nowMs += one.pass;
        } else if ('remove' in one) {
          const item = added[one.remove];
          if (item !== undefined && accumulator.remove(item)) removed.add(item);
        } else accumulator.flushAll();
      }
      accumulator.flushAll();
      expect(accumulator.size).toBe(0);
      const out = flushed.flatMap(({ items }) => [...items]);
      expect([...out].sort()).toEqual(added.filter((item) => !removed.has(item)).sort());
      for (const { items, atMs } of flushed) {
        expect(items.length).toBeLessThanOrEqual(8);
        expect(new Set(items.map((item) => item[0])).size).toBe(1);
        for (const item of items) {
          expect(atMs - (addedAtMs.get(item) ?? 0)).toBeLessThanOrEqual(50);
        }
      }
    }),
  );
});
