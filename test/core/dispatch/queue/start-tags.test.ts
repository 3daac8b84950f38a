import fc from 'fast-check';
import { Share } from '../../../../core/dispatch/queue/flow-order';
import { StartTags } from '../../../../core/dispatch/queue/start-tags';
import { PairSpread } from './pair-spread';

const WEIGHTS = [0.001, 0.5, 1, 1, 3, 1_000];
/** Their inverses are exact, so tags are never rounded. */
const BINARY_WEIGHTS = [1 / 1_024, 0.5, 1, 1, 4, 1_024];
const COSTS = [1, 7, 100, 4_096];
const STEP = fc.record({
  do: fc.constantFrom('serve', 'serve', 'serve', 'join', 'leave', 'turn', 'bypass', 'end', 'end'),
  pick: fc.nat(WEIGHTS.length - 1),
  cost: fc.constantFrom(...COSTS),
  real: fc.constantFrom(...COSTS),
});
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

/** Start tags under random steps. Each competitor always has a next request, until it leaves. */
class Scene {
  readonly tags = new StartTags<Share>();
  readonly shares: Share[];
  readonly spread: PairSpread;
  /** What the ends of requests in flight will change: surcharges above 0, refunds below. */
  readonly outstanding = WEIGHTS.map((): { share: number; difference: number }[] => []);
  readonly mostOwed = WEIGHTS.map(() => 0);
  turnCost = 0;
  longestTurn = 0;
  #served: Share | undefined;

  constructor(weights = WEIGHTS) {
    this.shares = weights.map((weight) => new Share(weight));
    this.spread = new PairSpread(weights);
  }

  step({ do: what, pick, cost, real }: Step, withCorrections: boolean): number | null {
    const share = this.shares[pick]!;
    const competes = share.slot !== -1;
    if (what === 'join' && !competes) this.tags.join(share);
    if (what === 'leave' && competes) this.tags.leave(share);
    if (what === 'bypass' && this.tags.size === 0) this.tags.charge(share, cost);
    if (what === 'end') this.#end(pick);
    this.spread.setCompeting((i) => this.shares[i]!.slot !== -1);
    const charge = { cost, real: withCorrections ? real : cost };
    if (what === 'serve') return this.#serve(this.tags.first, charge, false);
    if (what === 'turn') return this.#serve(this.#served, charge, true);
    return null;
  }

  #serve(
    share: Share | undefined,
    { cost, real }: { cost: number; real: number },
    continuesTurn: boolean,
  ): number | null {
    if (share === undefined || share.slot === -1) return null;
    const i = this.shares.indexOf(share);
    this.turnCost = continuesTurn ? this.turnCost + Math.max(cost, real) : 0;
    this.longestTurn = Math.max(this.longestTurn, this.turnCost);
    this.#served = share;
    this.tags.serve(share, { sequence: 0, cost, tag: 0 }, continuesTurn);
    this.tags.retag(share);
    this.outstanding[i]!.push({ share: i, difference: real - cost });
    const owed = (sign: number) =>
      this.outstanding[i]!.reduce((sum, one) => sum + Math.max(0, sign * one.difference), 0);
    this.mostOwed[i] = Math.max(this.mostOwed[i]!, owed(1) + owed(-1));
    this.spread.serve(i, real);
    return i;
  }

  /** Ends a request of a competitor that has some in flight. */
  #end(pick: number): void {
    const busy = this.outstanding.filter((requests) => requests.length > 0);
    const ended = busy[pick % Math.max(1, busy.length)]?.shift();
    if (ended !== undefined) this.tags.correct(this.shares[ended.share]!, ended.difference);
  }
}

describe('start tags', () => {
  it('keep the service of two competitors within one turn and one request each, by weight and cost', () => {
    const largest = Math.max(...COSTS);
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 200, size: 'max' }), (steps) => {
        const scene = new Scene();
        for (const step of steps) {
          scene.step(step, false);
          scene.spread.check((i) => (largest + scene.longestTurn) / WEIGHTS[i]!);
        }
      }),
    );
  });

  it('add at most the corrections that are outstanding to that bound', () => {
    const largest = Math.max(...COSTS);
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 200, size: 'max' }), (steps) => {
        const scene = new Scene();
        for (const step of steps) {
          scene.step(step, true);
          const slack = (i: number) => largest + scene.longestTurn + 2 * scene.mostOwed[i]!;
          scene.spread.check((i) => slack(i) / WEIGHTS[i]!);
        }
      }),
    );
  });

  it('never let virtual time fall or pass a competitor', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 200, size: 'max' }), (steps) => {
        const scene = new Scene();
        let before = 0;
        for (const step of steps) {
          scene.step(step, true);
          const now = scene.tags.virtualTime;
          const least = scene.tags.first?.key ?? Infinity;
          expect(now >= before && least >= now).toBe(true);
          before = now;
        }
      }),
    );
  });

  it('keep their order in a rebase', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 200, size: 'max' }), (steps) => {
        const [small, large] = [new Scene(BINARY_WEIGHTS), new Scene(BINARY_WEIGHTS)];
        for (const step of steps) {
          // A power of two scales every tag exactly, so both orders are equal unless a rebase changes one.
          const scaled = { ...step, cost: step.cost * 2 ** 30, real: step.real * 2 ** 30 };
          const served = small.step(step, true);
          if (large.step(scaled, true) !== served) expect(large.tags.first).toBe(served);
          large.tags.rebase(large.shares);
        }
      }),
    );
  });

  it('serve a newcomer within one request of each other competitor', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20 }), fc.nat(200), (flows, before) => {
        const tags = new StartTags<Share>();
        const shares = Array.from({ length: flows }, () => new Share(1));
        const serve = (): Share => {
          const first = tags.first!;
          tags.serve(first, { sequence: 0, cost: 1, tag: 0 }, false);
          tags.retag(first);
          return first;
        };
        const [newcomer, ...others] = shares as [Share, ...Share[]];
        for (const share of others) tags.join(share);
        for (let i = 0; i < before; i++) serve();
        tags.join(newcomer);
        const served = Array.from({ length: flows }, serve);
        expect(served).toContain(newcomer);
      }),
    );
  });
});

describe('start tags with costs that become known at the end', () => {
  const head = { sequence: 0, cost: 100, tag: 0 };

  it('give an overestimated competitor its full share, however many requests it has in flight', () => {
    const tags = new StartTags<Share>();
    const [overestimated, exact] = [new Share(1), new Share(1)];
    for (const share of [overestimated, exact]) tags.join(share);
    const served = new Map([overestimated, exact].map((share) => [share, 0]));
    let inFlight = 0;
    for (let i = 0; i < 2_000; i++) {
      const first = tags.first!;
      tags.serve(first, head, false);
      tags.retag(first);
      const real = first === overestimated ? 10 : 100;
      served.set(first, served.get(first)! + real);
      if (first === overestimated && ++inFlight === 10) {
        for (; inFlight > 0; inFlight--) tags.correct(first, -90);
      }
    }
    const difference = served.get(overestimated)! - served.get(exact)!;
    expect(Math.abs(difference)).toBeLessThanOrEqual(100 + 100 + 10 * 90);
  });

  it('do not move a queued head forward for a refund, but move it back for a surcharge', () => {
    const tags = new StartTags<Share>();
    const [a, b] = [new Share(1), new Share(1)];
    for (const share of [a, b]) tags.join(share);
    tags.serve(a, head, false);
    tags.retag(a);
    tags.correct(a, -100);
    expect([tags.first, a.key]).toEqual([b, 100]);
    tags.serve(b, head, false);
    tags.retag(b);
    expect(tags.first).toBe(a);
    tags.correct(a, 150);
    expect([tags.first, a.key]).toEqual([b, 150]);
  });

  it('do not starve a competitor for what it used while nothing was queued', () => {
    const tags = new StartTags<Share>();
    const [busy, quiet] = [new Share(1), new Share(1)];
    for (let i = 0; i < 10_000; i++) tags.charge(busy, 100);
    for (const share of [busy, quiet]) tags.join(share);
    const turns = Array.from({ length: 4 }, () => {
      const first = tags.first!;
      tags.serve(first, head, false);
      tags.retag(first);
      return first === busy ? 'busy' : 'quiet';
    });
    expect(turns.filter((who) => who === 'busy')).toHaveLength(2);
  });
});
