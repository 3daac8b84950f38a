import fc from 'fast-check';
import { FairQueue } from '../../../core/dispatch/fair-queue';
import type { QueuePlace } from '../../../core/dispatch/tenant-backlog';

const [URGENT, NORMAL, RELAXED] = [2, 3, 4];

/** A queue in which every tenant always waits: a served tenant joins again at once. */
function crowd(
  members: readonly { tenant: string; model?: string; priority?: number; count?: number }[],
  weights: Readonly<Record<string, number>> = {},
) {
  const queue = new FairQueue<string>((tenant) => weights[tenant] ?? 1);
  for (const { tenant, model = 'm', priority = NORMAL, count = 1 } of members) {
    for (let i = 0; i < count; i++) queue.push(tenant, { tenant, model, priority });
  }
  return (turns: number) => {
    const served: string[] = [];
    for (let i = 0; i < turns; i++) {
      const { item, turn } = queue.shift()!;
      served.push(turn.model === 'm' ? item : `${item}:${turn.model}`);
      queue.push(item, turn);
    }
    return served;
  };
}

function countsOf(served: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of served) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}

describe('tenants in a fair queue', () => {
  it('take turns, however many requests each has in line', () => {
    const serve = crowd([{ tenant: 'many', count: 50 }, { tenant: 'one' }]);
    expect(countsOf(serve(1_000))).toEqual({ many: 500, one: 500 });
  });

  it('take turns by weight', () => {
    const members = [{ tenant: 'a', count: 3 }, { tenant: 'b', count: 9 }, { tenant: 'c' }];
    const serve = crowd(members, { a: 3, c: 0.5 });
    expect(countsOf(serve(900))).toEqual({ a: 600, b: 200, c: 100 });
  });

  it('gain nothing by urgency if their own turns are a fifth already', () => {
    const serve = crowd([
      { tenant: 'hasty', priority: URGENT, count: 30 },
      { tenant: 'calm', count: 3 },
    ]);
    expect(countsOf(serve(1_000))).toEqual({ hasty: 500, calm: 500 });
  });

  it('get a fifth of the turns for urgent work, however many tenants there are', () => {
    const calm = Array.from({ length: 19 }, (_, i) => ({ tenant: `calm${i}` }));
    const serve = crowd([...calm, { tenant: 'hasty', priority: URGENT, count: 30 }]);
    const served = countsOf(serve(1_900));
    expect(served['hasty']).toBeGreaterThanOrEqual(1_900 / 5);
    expect(served['hasty']).toBeLessThanOrEqual(1_900 / 4);
    const others = Object.entries(served).flatMap(([tenant, n]) => (tenant === 'hasty' ? [] : [n]));
    expect(Math.max(...others) - Math.min(...others)).toBeLessThanOrEqual(1);
  });

  it('lose none of their own turns for a promoted urgent request', () => {
    const calm = Array.from({ length: 6 }, (_, i) => ({ tenant: `c${i}` }));
    const serve = crowd([...calm, { tenant: 'h', priority: URGENT, count: 9 }]);
    const order = ['c0 c1 c2 c3 h c4 c5 h', 'c0 c1 c2 c3 h c4 c5 h'];
    expect(serve(16).join(' ')).toBe(order.join(' '));
  });

  it('share that fifth if several have urgent work', () => {
    const calm = Array.from({ length: 30 }, (_, i) => ({ tenant: `calm${i}` }));
    const hasty = ['x', 'y'].map((tenant) => ({ tenant, priority: URGENT, count: 9 }));
    const { x = 0, y = 0 } = countsOf(crowd([...calm, ...hasty])(3_000));
    expect(Math.abs(x - y)).toBeLessThanOrEqual(2);
    expect(x + y).toBeGreaterThanOrEqual(3_000 / 5);
    expect(x + y).toBeLessThanOrEqual(3_000 / 4);
  });

  it('are served by priority, then models in turn, then first come', () => {
    const queue = new FairQueue<string>();
    const wait = (item: string, model: string, priority: number) =>
      queue.push(item, { tenant: 't', model, priority });
    wait('relaxed', 'm', RELAXED);
    for (const name of ['m1', 'm2', 'm3']) wait(name, 'm', NORMAL);
    wait('n1', 'n', NORMAL);
    wait('urgent', 'm', URGENT);
    const order = Array.from({ length: 6 }, () => queue.shift()!.item);
    expect(order).toEqual(['urgent', 'm1', 'n1', 'm2', 'm3', 'relaxed']);
    expect(queue.shift()).toBeNull();
  });

  it('gain nothing by using many models', () => {
    const members = Array.from({ length: 40 }, (_, i) => ({ tenant: 'a', model: `m${i}` }));
    const served = crowd([...members, { tenant: 'b' }])(800);
    expect(served.filter((one) => one === 'b')).toHaveLength(400);
    const models = countsOf(served.filter((one) => one !== 'b'));
    expect(new Set(Object.values(models))).toEqual(new Set([10]));
  });
});

describe('a fair queue with any history', () => {
  it('serves every request once, in order within tenant and priority, and ends empty', () => {
    const step = fc.record({
      do: fc.constantFrom('push', 'push', 'shift', 'shift', 'remove', 'giveBack'),
      tenant: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(URGENT, NORMAL, RELAXED),
      pick: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new FairQueue<number>();
        let model: QueuePlace<number>[] = [];
        let ids = 0;
        let last: QueuePlace<number> | null = null;
        const isFirst = (place: QueuePlace<number>) => {
          const { tenant, priority } = place.turn;
          const mates = model.filter((one) => one.turn.tenant === tenant);
          const least = Math.min(...mates.map((one) => one.turn.priority));
          return priority === least && mates.find((one) => one.turn.priority === least) === place;
        };
        for (const { do: what, tenant, priority, pick } of steps) {
          if (what === 'push') model.push(queue.push(ids++, { tenant, model: 'm', priority }));
          else if (what === 'remove' && model.length > 0) {
            const place = model[pick % model.length]!;
            queue.remove(place);
            queue.remove(place);
            model = model.filter((one) => one !== place);
          } else if (what === 'giveBack' && last !== null) {
            queue.giveBack(last);
            model.unshift(last);
            last = null;
          } else if (what === 'shift') {
            last = queue.shift();
            if (last === null) expect(model).toEqual([]);
            else {
              expect(isFirst(last)).toBe(true);
              model = model.filter((one) => one !== last);
            }
          }
          expect(queue.size).toBe(model.length);
        }
        while (model.length > 0) {
          const place = queue.shift()!;
          model = model.filter((one) => one !== place);
        }
        expect(queue.shift()).toBeNull();
      }),
    );
  });
});
