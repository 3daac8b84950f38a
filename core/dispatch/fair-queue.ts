import { FairShares } from './fair-shares';
import { QueuePlace, TenantBacklog, type Turn } from './tenant-backlog';

/** Of so many turns at most one goes to urgent work out of its tenant's turn. */
const TURNS_PER_URGENT = 5;
/** Tenants without waiters that are remembered before those that can be forgotten are looked for. */
const REMEMBERED_TENANTS = 64;

/**
 * A queue that no tenant can shut others out of. Tenants take turns by weight ({@link FairShares}),
 * whatever their priorities; within a tenant see {@link TenantBacklog}.
 *
 * Urgent work of all tenants together gets one turn in five, if the tenants' own turns do not give it
 * as much. Such a turn is free for its tenant, or it would only be borrowed from the next one. So work
 * close to its deadline moves among many tenants, and a tenant that makes all its work urgent gains a
 * fifth at most, and nothing if its own share is larger.
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

  /** Puts back to the front what had its turn and could not use it; its next turn is free. */
  giveBack(place: QueuePlace<T>): void {
    place.isPaid = true;
    this.#add(place, 'front');
  }

  /** The next in turn, or null if nobody waits. */
  shift(): QueuePlace<T> | null {
    const first = this.#shares.first;
    if (first === undefined) return null;
    if (this.#turnsWithoutUrgent < TURNS_PER_URGENT) this.#turnsWithoutUrgent++;
    const promoted = this.#promoted(first);
    const place = (promoted ?? first).shift();
    if (place === null) return null;
    if (promoted === null && !place.isPaid) this.#shares.serve(first);
    this.#taken(promoted ?? first);
    return place;
  }

  /** Leaves without being served; a place that does not wait is left as it is. */
  remove(place: QueuePlace<T>): void {
    const { backlog } = place;
    if (backlog === null) return;
    backlog.remove(place);
    this.#taken(backlog);
  }

  /** Whose urgent work goes before the turn of `first`; null if nobody's does. */
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

  #taken(backlog: TenantBacklog<T>): void {
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

  /** Any number of tenants may pass by over the months. */
  #forgetSpent(): void {
    for (const [tenant, backlog] of this.#backlogs) {
      if (backlog.size === 0 && this.#shares.isSpent(backlog)) this.#backlogs.delete(tenant);
    }
    this.#sweepAt = Math.max(REMEMBERED_TENANTS, 2 * this.#backlogs.size);
  }
}
