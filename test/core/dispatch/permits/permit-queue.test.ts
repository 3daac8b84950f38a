import { PRIORITY } from '../../../../core/chunks/priority';
import { PermitQueue } from '../../../../core/dispatch/permits/permit-queue';

const { urgent: URGENT, normal: NORMAL, relaxed: RELAXED } = PRIORITY;

interface Member {
  readonly tenant: string;
  readonly batch?: string;
  readonly priority?: number;
  readonly count?: number;
  readonly cost?: number;
}

interface CrowdOptions {
  readonly weights?: Readonly<Record<string, number>>;
  readonly divides?: boolean;
  /** What requests of a tenant really cost. */
  readonly real?: (tenant: string) => number;
}

/** A limit of 4 permits for which every member always waits: a served one waits again at once. */
function crowd(members: readonly Member[], { weights, divides, real }: CrowdOptions = {}) {
  const queue = new PermitQueue<Required<Member>>({
    divides: divides ?? false,
    weightOf: (tenant) => weights?.[tenant] ?? 1,
  });
  const wait = (member: Required<Member>): void => queue.push(queue.turnOf(member, member));
  for (const member of members) {
    const all = { batch: 'b', priority: NORMAL, count: 1, cost: 1, ...member };
    for (let i = 0; i < all.count; i++) wait(all);
  }
  const held: ReturnType<typeof queue.shift>[] = [];
  return (turns: number): Required<Member>[] =>
    Array.from({ length: turns }, () => {
      const ended = held.length === 4 ? held.shift() : undefined;
      if (ended) queue.end(ended, real?.(ended.owner.tenant) ?? ended.cost);
      const turn = queue.shift()!;
      held.push(turn);
      wait(turn.owner);
      return turn.owner;
    });
}

function countsOf(served: readonly Member[], key: 'tenant' | 'batch' = 'tenant') {
  const counts: Record<string, number> = {};
  for (const member of served) counts[member[key]!] = (counts[member[key]!] ?? 0) + 1;
  return counts;
}

describe('tenants that wait for permits', () => {
  it('share equally, however many requests each has waiting', () => {
    const serve = crowd([{ tenant: 'many', count: 50 }, { tenant: 'one' }]);
    expect(countsOf(serve(1_000))).toEqual({ many: 500, one: 500 });
  });

  it('share by weight', () => {
    const members = [{ tenant: 'a', count: 3 }, { tenant: 'b', count: 9 }, { tenant: 'c' }];
    const serve = crowd(members, { weights: { a: 3, c: 0.5 } });
    expect(countsOf(serve(900))).toEqual({ a: 600, b: 200, c: 100 });
  });

  it('share by cost', () => {
    const serve = crowd([
      { tenant: 'large', cost: 9 },
      { tenant: 'small', cost: 1 },
    ]);
    expect(countsOf(serve(1_000))).toEqual({ large: 100, small: 900 });
  });

  it('share by real cost, though all requests are expected to cost the same', () => {
    const members = [
      { tenant: 'large', count: 9, cost: 5 },
      { tenant: 'small', count: 9, cost: 5 },
    ];
    const serve = crowd(members, { real: (tenant) => (tenant === 'large' ? 9 : 1) });
    const { large = 0, small = 0 } = countsOf(serve(2_000));
    expect((large * 9) / (large * 9 + small)).toBeCloseTo(0.5, 1);
  });

  it('gain nothing by urgency if their own share is a fifth already', () => {
    const serve = crowd([
      { tenant: 'hasty', priority: URGENT, count: 30 },
      { tenant: 'calm', count: 3 },
    ]);
    expect(countsOf(serve(1_000))).toEqual({ hasty: 500, calm: 500 });
  });

  it('get a fifth of the cost for urgent work, however many tenants there are', () => {
    const calm = Array.from({ length: 19 }, (_, i) => ({ tenant: `calm${i}`, cost: 3 }));
    const hasty = { tenant: 'hasty', priority: URGENT, count: 30, cost: 12 };
    const served = countsOf(crowd([...calm, hasty])(5_000));
    const ofCalm = calm.map(({ tenant }) => served[tenant]! * 3);
    const ofHasty = served['hasty']! * 12;
    const share = ofHasty / (ofHasty + ofCalm.reduce((sum, cost) => sum + cost, 0));
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.25);
    expect(Math.max(...ofCalm) - Math.min(...ofCalm)).toBeLessThanOrEqual(3);
  });

  it('lose none of their own turns for an urgent request out of turn', () => {
    const calm = Array.from({ length: 6 }, (_, i) => ({ tenant: `c${i}` }));
    const serve = crowd([...calm, { tenant: 'h', priority: URGENT, count: 9 }]);
    const order = serve(14).map(({ tenant }) => tenant);
    expect(order.join(' ')).toBe('h c0 c1 c2 c3 h c4 c5 h c0 c1 c2 c3 h');
  });

  it('share that fifth if several have urgent work', () => {
    const calm = Array.from({ length: 30 }, (_, i) => ({ tenant: `calm${i}` }));
    const hasty = ['x', 'y'].map((tenant) => ({ tenant, priority: URGENT, count: 9 }));
    const { x = 0, y = 0 } = countsOf(crowd([...calm, ...hasty])(3_000));
    expect(Math.abs(x - y)).toBeLessThanOrEqual(2);
    expect(x + y).toBeGreaterThanOrEqual(3_000 / 5);
    expect(x + y).toBeLessThanOrEqual(3_000 / 4);
  });

  it('get urgent work out of turn soon after another tenant had nothing but urgent work', () => {
    const calm = Array.from({ length: 9 }, (_, i) => ({ tenant: `calm${i}` }));
    const queue = new PermitQueue<string>({ divides: false, weightOf: () => 1 });
    const serve = (member: Member) => {
      const { tenant, priority = NORMAL } = member;
      queue.push(queue.turnOf(tenant, { tenant, batch: 'b', priority, cost: 1 }));
      const turn = queue.shift()!;
      queue.push(queue.turnOf(turn.owner, { tenant: turn.owner, batch: 'b', priority, cost: 1 }));
      return turn.owner;
    };
    for (let i = 0; i < 1_000; i++) serve({ tenant: 'hasty', priority: URGENT });
    for (const { tenant } of calm) serve({ tenant });
    const next = Array.from({ length: 6 }, () => queue.shift()!.owner);
    expect(next).toContain('hasty');
  });

  it('are served by priority, then batches share by cost, then first come', () => {
    const queue = new PermitQueue<string>({ divides: false, weightOf: () => 1 });
    const wait = (owner: string, batch: string, priority: number, cost = 1) =>
      queue.push(queue.turnOf(owner, { tenant: 't', batch, priority, cost }));
    wait('relaxed', 'm', RELAXED);
    for (const name of ['m1', 'm2', 'm3']) wait(name, 'm', NORMAL, 2);
    for (const name of ['n1', 'n2', 'n3']) wait(name, 'n', NORMAL, 1);
    wait('urgent', 'm', URGENT);
    const order = Array.from({ length: 8 }, () => queue.shift()!.owner);
    expect(order).toEqual(['urgent', 'm1', 'n1', 'n2', 'm2', 'n3', 'm3', 'relaxed']);
    expect(queue.shift()).toBeNull();
  });

  it('are served by their order within a batch, and equal ones as they came', () => {
    const queue = new PermitQueue<string>({ divides: false, weightOf: () => 1 });
    const wait = (owner: string, order?: number) => {
      const request = { tenant: 't', batch: 'm', priority: NORMAL, cost: 1 };
      queue.push(queue.turnOf(owner, order === undefined ? request : { ...request, order }));
    };
    wait('late', 9);
    wait('second', 5);
    wait('new');
    wait('third', 5);
    wait('first', 2);
    wait('last', 9);
    const order = Array.from({ length: 6 }, () => queue.shift()!.owner);
    expect(order).toEqual(['new', 'first', 'second', 'third', 'late', 'last']);
  });

  it('gain nothing by many batches', () => {
    const members = Array.from({ length: 40 }, (_, i) => ({ tenant: 'a', batch: `b${i}` }));
    const served = crowd([...members, { tenant: 'b' }])(800);
    expect(countsOf(served)).toEqual({ a: 400, b: 400 });
    const batches = countsOf(
      served.filter(({ tenant }) => tenant === 'a'),
      'batch',
    );
    expect(new Set(Object.values(batches))).toEqual(new Set([10]));
  });
});

describe('tenants that wait for permits of a server that divides', () => {
  it('hold permits in proportion to their weights, whatever their requests cost', () => {
    const queue = new PermitQueue<string>({
      divides: true,
      weightOf: (tenant) => (tenant === 'heavy' ? 3 : 1),
    });
    for (const [tenant, cost] of [
      ['heavy', 1],
      ['large', 90],
      ['small', 1],
    ] as const) {
      for (let i = 0; i < 30; i++) {
        queue.push(queue.turnOf(tenant, { tenant, batch: 'b', priority: NORMAL, cost }));
      }
    }
    const held = Array.from({ length: 20 }, () => ({ tenant: queue.shift()!.owner }));
    expect(countsOf(held)).toEqual({ heavy: 12, large: 4, small: 4 });
  });

  it('take turns if there are more of them than permits', () => {
    const members = Array.from({ length: 9 }, (_, i) => ({ tenant: `t${i}`, cost: i + 1 }));
    const counts = Object.values(countsOf(crowd(members, { divides: true })(900)));
    expect(counts).toEqual(Array(9).fill(100));
  });

  it('give urgent work no permit before all of them have one', () => {
    const members = Array.from({ length: 4 }, (_, i) => ({ tenant: `t${i}`, count: 9 }));
    const hasty = { tenant: 'hasty', priority: URGENT, count: 30 };
    const served = countsOf(crowd([...members, hasty], { divides: true })(1_000));
    expect(served['hasty']).toBeLessThanOrEqual(201);
  });
});
