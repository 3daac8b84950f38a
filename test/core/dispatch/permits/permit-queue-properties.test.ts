import fc from 'fast-check';
import { PRIORITY } from '../../../../core/chunks/priority';
import { PermitQueue, type QueueTurn } from '../../../../core/dispatch/permits/permit-queue';
import { PairSpread } from '../queue/pair-spread';

const TENANTS = ['a', 'b', 'c'];
const WEIGHTS = [1, 3, 0.5];
const COSTS = [1, 2, 7, 20];

/** One request; the order of `id` is the order of arrival. */
interface Request {
  readonly id: number;
  readonly tenant: string;
  readonly batch: string;
  readonly priority: number;
  readonly cost: number;
}
type Turn = QueueTurn<Request>;

const STEP = fc.record({
  do: fc.constantFrom('push', 'push', 'shift', 'shift', 'end', 'remove', 'giveBack', 'take'),
  tenant: fc.constantFrom(...TENANTS),
  batch: fc.constantFrom('x', 'y'),
  priority: fc.constantFrom(PRIORITY.urgent, PRIORITY.normal, PRIORITY.relaxed),
  cost: fc.constantFrom(...COSTS),
  real: fc.constantFrom(...COSTS),
  pick: fc.nat(),
});
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

/** A queue beside plain lists of what waits and what holds a permit. */
class Scene {
  readonly queue: PermitQueue<Request>;
  waiting: Turn[] = [];
  held: Turn[] = [];
  #ids = 0;

  constructor(divides: boolean) {
    const weightOf = (tenant: string): number => WEIGHTS[TENANTS.indexOf(tenant)]!;
    this.queue = new PermitQueue({ divides, weightOf });
  }

  /** Returns the turn that was served, if the step serves one. */
  step({ do: what, real, pick, ...request }: Step): Turn | null {
    const { queue } = this;
    const turn = (): Turn => queue.turnOf({ id: this.#ids++, ...request }, request);
    if (what === 'push') this.waiting.push(this.#pushed(turn()));
    if (what === 'take' && queue.size === 0) this.held.push(this.#taken(turn()));
    if (what === 'shift') return this.#shift();
    const some = (turns: Turn[]): Turn[] => turns.splice(pick % Math.max(1, turns.length), 1);
    if (what === 'end') some(this.held).forEach((one) => queue.end(one, real));
    if (what === 'remove') some(this.waiting).forEach((one) => queue.remove(one));
    if (what === 'giveBack') {
      some(this.held).forEach((one) => {
        queue.giveBack(one);
        this.waiting.unshift(one);
      });
    }
    return null;
  }

  open(tenant: string): number {
    return this.held.filter(({ owner }) => owner.tenant === tenant).length;
  }

  #pushed(turn: Turn): Turn {
    this.queue.push(turn);
    return turn;
  }

  #taken(turn: Turn): Turn {
    this.queue.take(turn);
    return turn;
  }

  #shift(): Turn | null {
    const turn = this.queue.shift();
    if (turn === null) return null;
    this.waiting = this.waiting.filter((one) => one !== turn);
    this.held.push(turn);
    return turn;
  }
}

const STEPS = fc.array(STEP, { maxLength: 200, size: 'max' });

describe('a queue for permits with any history', () => {
  it('serves each request once, by priority in a tenant and in order in a batch, and ends empty', () => {
    fc.assert(
      fc.property(STEPS, fc.boolean(), (steps, divides) => {
        const scene = new Scene(divides);
        for (const step of steps) {
          const before = [...scene.waiting];
          const turn = scene.step(step);
          if (turn !== null) expectFirst(turn, before);
          else if (step.do === 'shift') expect(before).toEqual([]);
          if (scene.queue.size !== scene.waiting.length) {
            expect(scene.queue.size).toBe(scene.waiting.length);
          }
        }
        const left = scene.waiting.length;
        for (let i = 0; i < left; i++) expect(scene.queue.shift()).not.toBeNull();
        expect(scene.queue.shift()).toBeNull();
      }),
    );
  });

  it('keeps the service of waiting tenants within one request each, by cost and weight', () => {
    const largest = Math.max(...COSTS);
    fc.assert(
      fc.property(STEPS, (steps) => {
        const scene = new Scene(false);
        const spread = new PairSpread(WEIGHTS);
        // Urgent requests may be served beyond the share of their tenant, and what is given back was charged.
        for (const step of steps.filter((one) => one.do !== 'giveBack')) {
          const exact = { ...step, priority: PRIORITY.normal, real: step.cost };
          if (exact.do === 'end') continue;
          const turn = scene.step(exact);
          const waits = (i: number) =>
            scene.waiting.some(({ owner }) => owner.tenant === TENANTS[i]);
          if (turn !== null) spread.serve(TENANTS.indexOf(turn.owner.tenant), turn.cost);
          spread.setCompeting(waits);
          spread.check((i) => largest / WEIGHTS[i]!);
        }
      }),
    );
  });

  it('gives a permit to a tenant that has none open, as long as one waits, if the server divides', () => {
    fc.assert(
      fc.property(STEPS, (steps) => {
        const scene = new Scene(true);
        for (const step of steps) {
          const starving = new Set(
            scene.waiting
              .map(({ owner }) => owner.tenant)
              .filter((tenant) => scene.open(tenant) === 0),
          );
          const tenant = scene.step(step)?.owner.tenant;
          if (tenant !== undefined && starving.size > 0) expect(starving).toContain(tenant);
        }
      }),
    );
  });

  it('gives the permit to a waiting tenant with the fewest open for its weight, if the server divides', () => {
    fc.assert(
      fc.property(STEPS, (steps) => {
        const scene = new Scene(true);
        for (const step of steps) {
          const least = Math.min(
            ...scene.waiting.map(({ owner: { tenant } }) => loadOf(scene, tenant)),
          );
          const before = TENANTS.map((tenant) => loadOf(scene, tenant));
          const turn = scene.step({ ...step, priority: PRIORITY.normal });
          if (turn === null) continue;
          expect(before[TENANTS.indexOf(turn.owner.tenant)]).toBe(least);
        }
      }),
    );
  });
});

function loadOf(scene: Scene, tenant: string): number {
  return scene.open(tenant) / WEIGHTS[TENANTS.indexOf(tenant)]!;
}

/** Fails unless a request of its tenant's first priority is the first of its batch in that priority. */
function expectFirst(turn: Turn, waiting: readonly Turn[]): void {
  const { tenant, batch, priority } = turn.owner;
  const mates = waiting.filter(({ owner }) => owner.tenant === tenant);
  expect(priority).toBe(Math.min(...mates.map(({ owner }) => owner.priority)));
  const line = mates.filter(({ owner }) => owner.batch === batch && owner.priority === priority);
  expect(line[0]).toBe(turn);
}
