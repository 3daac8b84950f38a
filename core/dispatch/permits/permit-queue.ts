import type { LoanClaim } from './loan-shares';
import type { PermitRequest, PermitTurn } from './permit-turn';
import { ShareTable } from './share-table';
import { TenantLine } from './tenant-line';
import { ByCost, FewestOpen, type TenantOrder } from './tenant-order';

/** How the tenants of a {@link PermitQueue} share. */
export interface PermitQueueOptions {
  /** Whether the server behind the limit divides its service among tenants itself. */
  readonly divides: boolean;
  /** The weight of a tenant, read when it first has a request; above 0. */
  readonly weightOf: (tenant: string) => number;
}

/** A {@link PermitTurn} of a {@link PermitQueue}. */
export type QueueTurn<W> = PermitTurn<W, TenantLine<W>>;

/** Urgent requests may get one part in so many of the cost across tenants. */
const URGENT_PART = 5;

/**
 * The queue of one limit, in which no tenant can starve another. It also counts who holds permits of the
 * limit, and what their requests cost (docs/design/permits.md#fair-turns).
 *
 * Priority alone would be unfair: clients choose the completion window, so a tenant could make all its
 * work urgent. Turns alone would miss deadlines: with a hundred tenants, urgent work would wait for a
 * hundred turns. So urgent work of all tenants together gets a fifth of the cost, unless the tenants' own
 * turns give it as much already. Such a turn is not charged to the tenant, because it would then only be
 * borrowed from the tenant's next turn. A tenant that makes everything urgent gains at most that fifth,
 * and nothing if its own share is larger.
 *
 * Costs are expected ones until the end of a request, which corrects them.
 */
export class PermitQueue<W> {
  readonly #divides: boolean;
  readonly #weightOf: (tenant: string) => number;
  readonly #order: TenantOrder<TenantLine<W>>;
  readonly #tenants: ShareTable<TenantLine<W>>;
  /** Tenants with urgent requests that wait, in the order of their turns. */
  readonly #urgent = new Set<TenantLine<W>>();
  #size = 0;
  #open = 0;
  /** Cost that must be served before an urgent request may be served out of turn. */
  #urgentDebt = 0;

  constructor({ divides, weightOf }: PermitQueueOptions) {
    this.#divides = divides;
    this.#weightOf = weightOf;
    this.#order = divides ? new FewestOpen() : new ByCost();
    this.#tenants = new ShareTable((tenant) => tenant.isIdle && this.#order.isSpent(tenant));
  }

  /** Requests that wait. */
  get size(): number {
    return this.#size;
  }

  /** What batches claim of the limit: those whose requests wait or hold a permit. */
  claims(): LoanClaim[] {
    return [...this.#tenants].flatMap((tenant) => (tenant.isIdle ? [] : [...tenant.claims()]));
  }

  /** A request that does not wait yet; `push` or `take` must follow. */
  turnOf(owner: W, request: PermitRequest): QueueTurn<W> {
    return this.#tenantOf(request.tenant).turnOf(owner, request);
  }

  /** Makes a request wait behind those of its batch that are not of a later order. */
  push(turn: QueueTurn<W>): void {
    this.#add(turn, 'back');
  }

  /** Returns the permit of a request that could not use it, and makes it wait first; its next turn is free. */
  giveBack(turn: QueueTurn<W>): void {
    const { tenant } = turn.line;
    turn.isPaid = true;
    this.#open--;
    tenant.end(turn, 0);
    this.#order.end(tenant, 0);
    this.#add(turn, 'front');
  }

  /** Gives a permit to the request whose turn it is, and charges it; null if none waits. */
  shift(): QueueTurn<W> | null {
    const first = this.#order.first;
    if (first === undefined) return null;
    const promoted = this.#outOfTurn(first);
    const tenant = promoted ?? first;
    const isUrgent = tenant.hasUrgent;
    const turn = tenant.shift();
    if (turn === null) return null;
    const { charge } = turn;
    this.#size--;
    this.#open++;
    this.#countUrgent(isUrgent, charge);
    if (!turn.isPaid) turn.isCharged = promoted === null;
    if (promoted === null) this.#order.serve(tenant, charge);
    else this.#order.charge(tenant, 0);
    this.#onLeft(tenant);
    this.#order.rebase(this.#tenants);
    return turn;
  }

  /** Gives a permit to a request that does not wait. The queue must be empty. */
  take(turn: QueueTurn<W>): void {
    const { tenant } = turn.line;
    this.#open++;
    turn.isCharged = true;
    tenant.charge(turn);
    this.#order.charge(tenant, turn.cost);
    this.#order.rebase(this.#tenants);
  }

  /** Removes a request that waits. */
  remove(turn: QueueTurn<W>): void {
    const { tenant } = turn.line;
    tenant.remove(turn);
    this.#size--;
    this.#onLeft(tenant);
    this.#onEnd();
  }

  /** A permit is given back: its request cost `cost`, divided by the weight of its model. */
  end(turn: QueueTurn<W>, cost: number): void {
    const { tenant } = turn.line;
    const difference = cost - turn.cost;
    this.#open--;
    tenant.end(turn, difference);
    this.#order.end(tenant, turn.isCharged ? difference : 0);
    this.#onEnd();
  }

  /** The tenant whose urgent request is served instead of one of `first`; null if there is none. */
  #outOfTurn(first: TenantLine<W>): TenantLine<W> | null {
    if (this.#urgent.size === 0 || this.#urgentDebt > 0 || first.hasUrgent) return null;
    // A gateway that divides can serve a tenant only if it has a request there.
    if (this.#divides && first.open === 0) return null;
    for (const tenant of this.#urgent) {
      // To the end of the line; it is removed if it has no further ones.
      this.#urgent.delete(tenant);
      return tenant;
    }
    return null;
  }

  /** A long time with nothing but urgent requests must not block later ones, so only the last one counts. */
  #countUrgent(isUrgent: boolean, cost: number): void {
    const debt = isUrgent ? Math.max(this.#urgentDebt, URGENT_PART * cost) : this.#urgentDebt;
    this.#urgentDebt = Math.max(0, debt - cost);
  }

  #add(turn: QueueTurn<W>, end: 'back' | 'front'): void {
    const { tenant } = turn.line;
    tenant.push(turn, end);
    this.#size++;
    if (tenant.slot === -1) this.#order.join(tenant);
    if (tenant.hasUrgent) this.#urgent.add(tenant);
  }

  /** A request of `tenant` stopped waiting. */
  #onLeft(tenant: TenantLine<W>): void {
    if (tenant.size === 0) this.#order.leave(tenant);
    if (tenant.hasUrgent) this.#urgent.add(tenant);
    else if (this.#urgent.size > 0) this.#urgent.delete(tenant);
  }

  #onEnd(): void {
    if (this.#open === 0 && this.#size === 0) this.#order.onIdle();
  }

  #tenantOf(name: string): TenantLine<W> {
    return (
      this.#tenants.find(name) ??
      this.#tenants.add(name, new TenantLine<W>(name, this.#weightOf(name)))
    );
  }
}
