import { FairShares } from './fair-shares';
import { QueuePlace, TenantBacklog, type Turn } from './tenant-backlog';

/** At most one in this many turns goes to urgent work whose tenant does not have its turn. */
const TURNS_PER_URGENT = 5;
/** Above this number of tenants, idle tenants without a debt of turns are removed. */
const REMEMBERED_TENANTS = 64;

/**
 * A queue in which no tenant can starve another. Tenants take turns by weight ({@link FairShares});
 * within a tenant, {@link TenantBacklog} decides (docs/design/execution.md#fair-turns).
 *
 * Priority alone would be unfair: clients choose the completion window, so a tenant could make all its
 * work urgent. Turns alone would miss deadlines: with a hundred tenants, urgent work would wait for a
 * hundred turns. So urgent work of all tenants together gets one turn in five, unless the tenants' own
 * turns give it as much already. Such a turn is not charged to the tenant, because it would then only be
 * borrowed from the tenant's next turn. A tenant that makes everything urgent gains at most a fifth of the
 * turns, and nothing if its own share is larger.
 */
export class FairQueue<T> {
  readonly #weightOf: (tenant: string) => number;
  readonly #shares = new FairShares<TenantBacklog<T>>();
  readonly #backlogs = new Map<string, TenantBacklog<T>>();
  /** Tenants with urgent work, in the order of their turns. */
  readonly #urgent = new Set<TenantBacklog<T>>();
  #size = 0;
  #turnsWithoutUrgent = 0;
  #sweepAt = REMEMBERED_TENANTS;

  constructor(weightOf: (tenant: string) => number = () => 1) {
    this.#weightOf = weightOf;
  }

  get size(): number {
    return this.#size;
  }

  push(item: T, turn: Turn): QueuePlace<T> {
    const place = new QueuePlace(item, turn);
    this.#add(place, 'back');
    return place;
  }

  /** Returns a place that had its turn but could not use it to the front; its next turn is free. */
  giveBack(place: QueuePlace<T>): void {
    place.isPaid = true;
    this.#add(place, 'front');
  }

  /** Takes the place whose turn it is; null if nothing waits. */
  shift(): QueuePlace<T> | null {
    const first = this.#shares.first;
    if (first === undefined) return null;
    if (this.#turnsWithoutUrgent < TURNS_PER_URGENT) this.#turnsWithoutUrgent++;
    const promoted = this.#promoted(first);
    const place = (promoted ?? first).shift();
    if (place === null) return null;
    if (promoted === null && !place.isPaid) this.#shares.serve(first);
    this.#onTaken(promoted ?? first);
    return place;
  }

  /** Removes a place from the queue; does nothing if it does not wait. */
  remove(place: QueuePlace<T>): void {
    const { backlog } = place;
    if (backlog === null) return;
    backlog.remove(place);
    this.#onTaken(backlog);
  }

  /** The tenant whose urgent work is served instead of `first` in this turn; null if there is none. */
  #promoted(first: TenantBacklog<T>): TenantBacklog<T> | null {
    if (this.#urgent.size === 0) return null;
    const isDue = this.#turnsWithoutUrgent >= TURNS_PER_URGENT;
    if (!isDue && !first.hasUrgent) return null;
    this.#turnsWithoutUrgent = 0;
    if (first.hasUrgent) return null;
    const [next] = this.#urgent;
    if (next === undefined) return null;
    this.#urgent.delete(next);
    return next;
  }

  #add(place: QueuePlace<T>, end: 'back' | 'front'): void {
    const backlog = this.#backlogOf(place.turn.tenant);
    backlog.push(place, end);
    if (backlog.at === -1) this.#shares.join(backlog);
    if (backlog.hasUrgent) this.#urgent.add(backlog);
    this.#size++;
  }

  #onTaken(backlog: TenantBacklog<T>): void {
    this.#size--;
    if (backlog.hasUrgent) this.#urgent.add(backlog);
    else this.#urgent.delete(backlog);
    if (backlog.size > 0) return;
    this.#shares.leave(backlog);
    if (this.#shares.isSpent(backlog)) this.#backlogs.delete(backlog.tenant);
  }

  #backlogOf(tenant: string): TenantBacklog<T> {
    const known = this.#backlogs.get(tenant);
    if (known !== undefined) return known;
    if (this.#backlogs.size >= this.#sweepAt) this.#forgetSpent();
    const backlog = new TenantBacklog<T>(tenant, this.#weightOf(tenant));
    this.#backlogs.set(tenant, backlog);
    return backlog;
  }

  /** Forgets idle tenants. Clients choose tenant names, so their number is unbounded over time. */
  #forgetSpent(): void {
    for (const [tenant, backlog] of this.#backlogs) {
      if (backlog.size === 0 && this.#shares.isSpent(backlog)) this.#backlogs.delete(tenant);
    }
    this.#sweepAt = Math.max(REMEMBERED_TENANTS, 2 * this.#backlogs.size);
  }
}
