import type { Share } from '../queue/flow-order';
import { IndexedHeap } from '../queue/indexed-heap';
import { StartTags } from '../queue/start-tags';

/** A tenant at one limit. Its owner changes `open` before it calls the order. */
export interface TenantShare extends Share {
  /** Requests that hold a permit. */
  readonly open: number;
  readonly isIdle: boolean;
}

/** Decides which tenant gets a free permit (docs/design/permits.md#fair-turns). */
export interface TenantOrder<T extends TenantShare> {
  /** The waiting tenant to serve next; undefined if none waits. */
  readonly first: T | undefined;
  /** `tenant` begins to wait. */
  join(tenant: T): void;
  /** `tenant` stops waiting. */
  leave(tenant: T): void;
  /** The waiting `tenant` got a permit in its turn, for a request of this cost. */
  serve(tenant: T, cost: number): void;
  /** `tenant` got a permit without a turn. The cost is 0 if it is not charged. */
  charge(tenant: T, cost: number): void;
  /** `tenant` gave a permit back, whose request cost `difference` more than was charged. */
  end(tenant: T, difference: number): void;
  /** No tenant waits or holds a permit. */
  onIdle(): void;
  /** Whether `tenant`, which is idle, may be forgotten: a new one would be served no sooner. */
  isSpent(tenant: T): boolean;
  /** Keeps tags small; `tenants` are all, waiting or not. */
  rebase(tenants: Iterable<T>): void;
}

/**
 * Service by cost and weight: start-time fair queuing. For servers that take requests as they come, so that
 * the permits decide who is served.
 */
export class ByCost<T extends TenantShare> implements TenantOrder<T> {
  readonly #tags = new StartTags<T>();

  get first(): T | undefined {
    return this.#tags.first;
  }

  join(tenant: T): void {
    this.#tags.join(tenant);
  }

  leave(tenant: T): void {
    this.#tags.leave(tenant);
  }

  serve(tenant: T, cost: number): void {
    this.#tags.serve(tenant, { sequence: 0, cost, tag: 0 }, false);
    this.#tags.retag(tenant);
  }

  charge(tenant: T, cost: number): void {
    if (cost > 0) this.#tags.charge(tenant, cost);
  }

  end(tenant: T, difference: number): void {
    if (difference !== 0) this.#tags.correct(tenant, difference);
  }

  onIdle(): void {
    this.#tags.onIdle();
  }

  isSpent(tenant: T): boolean {
    return tenant.isIdle && tenant.finish <= this.#tags.virtualTime;
  }

  rebase(tenants: Iterable<T>): void {
    this.#tags.rebase(tenants);
  }
}

/**
 * The tenant with the fewest open requests divided by its weight is next; of equal ones, the one that has
 * waited for its turn the longest. For gateways that divide their service themselves: they can serve a tenant only while
 * it has a request there, so every waiting tenant needs one, however much it was served before.
 */
export class FewestOpen<T extends TenantShare> implements TenantOrder<T> {
  readonly #heap = new IndexedHeap<T>();
  #turns = 0;

  get first(): T | undefined {
    return this.#heap.first;
  }

  join(tenant: T): void {
    tenant.key = tenant.open / tenant.weight;
    tenant.order = ++this.#turns;
    this.#heap.push(tenant);
  }

  leave(tenant: T): void {
    this.#heap.remove(tenant);
  }

  serve(tenant: T): void {
    tenant.order = ++this.#turns;
    this.#update(tenant);
  }

  charge(tenant: T): void {
    this.serve(tenant);
  }

  end(tenant: T): void {
    this.#update(tenant);
  }

  onIdle(): void {
    // It remembers nothing of tenants that are idle.
  }

  isSpent(tenant: T): boolean {
    return tenant.isIdle;
  }

  rebase(): void {
    // Counts of open requests are small numbers.
  }

  #update(tenant: T): void {
    tenant.key = tenant.open / tenant.weight;
    if (tenant.slot !== -1) this.#heap.update(tenant);
  }
}
