import fc from 'fast-check';
import { FairRequestQueue } from '../../../../core/dispatch/queue/fair-request-queue';
import type { QueuedRequest } from '../../../../core/dispatch/queue/queued-request';
import { PairSpread } from './pair-spread';
import { makeRequest, popAll } from './requests';

const TENANTS = ['a', 'b', 'c', 'd'];
const STEP = fc.record({
  do: fc.constantFrom(
    'push',
    'push',
    'push',
    'pop',
    'pop',
    'remove',
    'evict',
    'park',
    'unpark',
    'end',
  ),
  tenant: fc.nat(TENANTS.length - 1),
  cost: fc.constantFrom<number[]>(1, 5, 40),
  priority: fc.constantFrom(2 as const, 3 as const, 3 as const, 4 as const),
  prefix: fc.constantFrom(null, null, 1, 2),
  pick: fc.nat(100),
});
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

/** A queue under random steps, beside a list of what must be in it. */
class Scene {
  readonly queue = new FairRequestQueue();
  readonly all: QueuedRequest[] = [];
  queued: QueuedRequest[] = [];
  readonly parked = new Set<string>();
  /** Real cost of ended requests and expected cost of those in flight, by tenant. */
  readonly served = new Map(TENANTS.map((tenant) => [tenant, 0]));

  /** Returns the request that this step dispatched. */
  step({ do: what, tenant: i, cost, priority, prefix, pick }: Step): QueuedRequest | null {
    const tenant = TENANTS[i]!;
    const earlier = this.all[pick % Math.max(1, this.all.length)];
    if (what === 'push') this.#push(makeRequest({ tenant, cost, priority, prefix }));
    if (what === 'pop') return this.#pop();
    if (what === 'remove' && earlier !== undefined) {
      expect(this.queue.remove(earlier)).toBe(this.queued.includes(earlier));
      this.#drop(earlier);
    }
    if (what === 'evict') this.#drop(this.queue.evict());
    if (what === 'park' || what === 'unpark') this.#park(tenant, what === 'park');
    if (what === 'end' && earlier?.state === 'dispatched') this.#end(earlier, cost);
    return null;
  }

  competes(i: number): boolean {
    const tenant = TENANTS[i]!;
    return !this.parked.has(tenant) && this.queued.some((one) => one.tenant === tenant);
  }

  #push(request: QueuedRequest): void {
    this.all.push(request);
    this.queued.push(request);
    this.queue.push(request);
  }

  #pop(): QueuedRequest | null {
    const { head } = this.queue;
    const next = this.queue.pop();
    expect(next).toBe(head);
    if (next === null) return null;
    this.served.set(next.tenant, this.served.get(next.tenant)! + next.cost);
    this.#drop(next);
    return next;
  }

  #end(request: QueuedRequest, cost: number): void {
    this.queue.end(request, cost);
    request.state = 'ended';
    this.served.set(request.tenant, this.served.get(request.tenant)! + cost - request.cost);
  }

  #park(tenant: string, isParked: boolean): void {
    const flow = this.queue.table.find(tenant, 'm');
    if (flow === undefined || !this.queued.some((one) => one.tenant === tenant)) return;
    if (isParked) this.queue.park(flow);
    else this.queue.unpark(flow);
    if (isParked) this.parked.add(tenant);
    else this.parked.delete(tenant);
  }

  #drop(request: QueuedRequest | null): void {
    this.queued = this.queued.filter((one) => one !== request);
    for (const tenant of this.parked) {
      if (!this.queued.some((one) => one.tenant === tenant)) this.parked.delete(tenant);
    }
  }
}

function forAllRuns(check: (steps: Step[]) => void): void {
  fc.assert(fc.property(fc.array(STEP, { maxLength: 150, size: 'max' }), check));
}

describe('a fair request queue', () => {
  it('counts exactly what is queued, and pops while anything may be dispatched', () => {
    forAllRuns((steps) => {
      const scene = new Scene();
      for (const step of steps) {
        scene.step(step);
        const { queue, queued } = scene;
        const { length, cost, backlogged } = queue;
        expect([length, cost, backlogged, queue.head !== null]).toEqual([
          queued.length,
          queued.reduce((sum, one) => sum + one.cost, 0),
          new Set(queued.map(({ tenant }) => tenant)).size,
          TENANTS.some((_, i) => scene.competes(i)),
        ]);
      }
    });
  });

  it('serves a flow in order of priority, and first in, first out within a priority', () => {
    forAllRuns((steps) => {
      const scene = new Scene();
      for (const step of steps) {
        const waiting = [...scene.queued];
        const popped = scene.step(step);
        if (popped === null) continue;
        const [first] = waiting
          .filter(({ tenant }) => tenant === popped.tenant)
          .sort((x, y) => x.priority - y.priority || x.sequence - y.sequence);
        expect(popped).toBe(first);
      }
    });
  });

  it('charges a flow what its requests really cost, and nothing for those that leave unserved', () => {
    forAllRuns((steps) => {
      const scene = new Scene();
      for (const step of steps) scene.step(step);
      for (const tenant of TENANTS) {
        expect(scene.queue.table.find(tenant, 'm')?.served ?? 0).toBe(scene.served.get(tenant));
      }
    });
  });

  it.each([
    ['one request', false, 40_000],
    ['one prefix turn and one request', true, 16_384 + 40_000],
  ])('keeps flows within %s of each other', (_what, withPrefix, slack) => {
    forAllRuns((steps) => {
      const scene = new Scene();
      const spread = new PairSpread(TENANTS.map(() => 1));
      for (const step of steps.filter(({ do: what }) => what !== 'end')) {
        const prefix = withPrefix ? step.prefix : null;
        const popped = scene.step({ ...step, priority: 3, prefix, cost: step.cost * 1_000 });
        if (popped !== null) spread.serve(TENANTS.indexOf(popped.tenant), popped.cost);
        spread.setCompeting((i) => scene.competes(i));
        spread.check(() => slack);
      }
    });
  });
});

describe('a request that leaves the queue unserved', () => {
  it('does not delay the next request of its flow', () => {
    const queue = new FairRequestQueue();
    const gone = Array.from({ length: 100 }, () => makeRequest({ tenant: 'a' }));
    for (const request of gone) queue.push(request);
    for (let i = 0; i < 10; i++) queue.push(makeRequest({ tenant: 'b' }));
    for (const request of gone) queue.remove(request);
    queue.push(makeRequest({ tenant: 'a' }));
    const order = popAll(queue).map(({ tenant }) => tenant);
    expect(order.indexOf('a')).toBeLessThanOrEqual(1);
  });

  it('can be removed only once', () => {
    const queue = new FairRequestQueue();
    const request = makeRequest();
    queue.push(request);
    expect([queue.remove(request), queue.remove(request)]).toEqual([true, false]);
    expect(queue.pop()).toBeNull();
  });
});

describe('eviction', () => {
  it('takes the newest request of the flow that was evicted from longest ago', () => {
    const queue = new FairRequestQueue();
    for (const tenant of ['a', 'a', 'b', 'b']) queue.push(makeRequest({ tenant }));
    const evicted = Array.from({ length: 5 }, () => queue.evict());
    expect(evicted.map((one) => one && [one.tenant, one.sequence])).toEqual([
      ['a', 1],
      ['b', 3],
      ['a', 0],
      ['b', 2],
      null,
    ]);
  });

  it('spares urgent requests while the flow has others', () => {
    const queue = new FairRequestQueue();
    for (const priority of [3, 4, 2] as const) queue.push(makeRequest({ priority }));
    const evicted = Array.from({ length: 3 }, () => queue.evict()?.priority);
    expect(evicted).toEqual([4, 3, 2]);
  });
});

describe('urgent requests out of turn', () => {
  it('go round the flows that have some, at no charge', () => {
    const queue = new FairRequestQueue();
    for (const tenant of ['a', 'a', 'a', 'b', 'b'])
      queue.push(makeRequest({ tenant, priority: 2 }));
    const served = Array.from({ length: 4 }, () => queue.popUrgent()?.tenant);
    expect(served).toEqual(['a', 'b', 'a', 'b']);
    expect(queue.popUrgent()?.tenant).toBe('a');
    expect(queue.popUrgent()).toBeNull();
  });

  it('are not charged at their end either', () => {
    const queue = new FairRequestQueue();
    queue.push(makeRequest({ tenant: 'a', priority: 2 }));
    const urgent = queue.popUrgent()!;
    for (const tenant of ['a', 'a', 'b']) queue.push(makeRequest({ tenant }));
    queue.end(urgent, 1_000);
    expect(popAll(queue).map(({ tenant }) => tenant)).toEqual(['a', 'b', 'a']);
    expect(queue.table.find('a', 'm')?.served).toBe(1_002);
  });

  it('skip flows that are parked', () => {
    const queue = new FairRequestQueue();
    for (const tenant of ['a', 'b']) queue.push(makeRequest({ tenant, priority: 2 }));
    queue.park(queue.table.flowOf('a', 'm'));
    expect([queue.popUrgent()?.tenant, queue.popUrgent()]).toEqual(['b', null]);
    queue.unparkAll();
    expect(queue.popUrgent()?.tenant).toBe('a');
  });
});

describe('prefix turns', () => {
  const push = (queue: FairRequestQueue, tenant: string, prefix: number | null, cost = 1_000) =>
    queue.push(makeRequest({ tenant, prefix, cost }));

  it('serve requests with the same prefix one after the other', () => {
    const queue = new FairRequestQueue();
    for (const prefix of [1, 1, 1, 2]) push(queue, 'a', prefix);
    for (let i = 0; i < 3; i++) push(queue, 'b', null);
    expect(popAll(queue).map(({ tenant, prefix }) => `${tenant}${prefix ?? ''}`)).toEqual([
      ...['a1', 'a1', 'a1'],
      ...['b', 'b', 'b'],
      'a2',
    ]);
  });

  it('end after a cost of 16,384', () => {
    const queue = new FairRequestQueue();
    for (let i = 0; i < 30; i++) push(queue, 'a', 1);
    push(queue, 'b', null);
    expect(popAll(queue).findIndex(({ tenant }) => tenant === 'b')).toBe(17);
  });

  it('end when the flow is parked', () => {
    const queue = new FairRequestQueue();
    for (let i = 0; i < 3; i++) push(queue, 'a', 1);
    for (const tenant of ['b', 'c']) push(queue, tenant, null);
    queue.pop();
    queue.park(queue.table.flowOf('a', 'm'));
    expect(popAll(queue).map(({ tenant }) => tenant)).toEqual(['b', 'c']);
  });

  it('do not exist with finish tags', () => {
    const queue = new FairRequestQueue({ scheduler: 'finish' });
    for (let i = 0; i < 2; i++) push(queue, 'a', 1);
    push(queue, 'b', null);
    expect(popAll(queue).map(({ tenant }) => tenant)).toEqual(['a', 'b', 'a']);
  });
});

describe('a clean-up', () => {
  it('finds what is expired or marked as cancelled', () => {
    const queue = new FairRequestQueue();
    const requests = [100, 200, 300].map((deadlineMs) => makeRequest({ deadlineMs }));
    for (const request of requests) queue.push(request);
    requests[2]!.markCancelled();
    expect([...queue.cleanupExpired(100)].flat()).toEqual([requests[0], requests[2]]);
  });

  it('forgets flows that had no requests for 5 min', () => {
    const queue = new FairRequestQueue();
    const sweep = (nowMs: number) => [...queue.cleanupExpired(nowMs)];
    queue.push(makeRequest());
    sweep(0);
    const request = queue.pop()!;
    sweep(1_000_000);
    queue.end(request, 1);
    sweep(2_000_000);
    sweep(2_299_999);
    expect(queue.table.size).toBe(1);
    sweep(2_300_000);
    expect(queue.table.size).toBe(0);
  });

  it('keeps at most 10,000 flows without requests', () => {
    const queue = new FairRequestQueue();
    for (let i = 0; i < 10_100; i++) queue.table.flowOf(`tenant ${i}`, 'm');
    queue.push(makeRequest({ tenant: 'tenant 0' }));
    for (const found of queue.cleanupExpired(0)) expect(found).toEqual([]);
    expect(queue.table.size).toBe(10_001);
    expect(queue.pop()?.tenant).toBe('tenant 0');
  });
});
