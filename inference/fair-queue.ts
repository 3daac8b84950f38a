/** A place in a {@link FairQueue}; hand it back to leave. */
export interface QueuePlace<T> {
  readonly item: T;
  readonly priority: number;
  readonly tenant: string;
}

interface Place<T> extends QueuePlace<T> {
  queued: boolean;
}

/** Tenants in the order of their turns; a `Map` keeps insertion order and deletes in O(1). */
interface Level<T> {
  readonly priority: number;
  readonly turns: Map<string, Set<Place<T>>>;
}

/**
 * Waiting line: lower priority numbers first, then round robin over tenants, first come first
 * served inside a tenant (execution §3 "Permits"). Adding, taking and leaving are O(1) apart from
 * the number of distinct priorities, of which there are a handful.
 */
export class FairQueue<T> {
  readonly #levels: Level<T>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T, { priority, tenant }: { priority: number; tenant: string }): QueuePlace<T> {
    const place: Place<T> = { item, priority, tenant, queued: true };
    const { turns } = this.#level(priority);
    const waiting = turns.get(tenant);
    if (waiting) waiting.add(place);
    else turns.set(tenant, new Set([place]));
    this.#size++;
    return place;
  }

  /** The next in line, or undefined when nobody waits. */
  shift(): T | undefined {
    for (const { turns } of this.#levels) {
      for (const [tenant, waiting] of turns) {
        for (const place of waiting) {
          this.#take(place, waiting);
          turns.delete(tenant);
          // Served: the tenant's next turn comes after everybody else's.
          if (waiting.size > 0) turns.set(tenant, waiting);
          return place.item;
        }
      }
    }
    return undefined;
  }

  /** Leaves without being served; a place that is no longer queued is left as it is. */
  remove(given: QueuePlace<T>): void {
    const place = given as Place<T>;
    if (!place.queued) return;
    const { turns } = this.#level(place.priority);
    const waiting = turns.get(place.tenant);
    if (!waiting) return;
    this.#take(place, waiting);
    if (waiting.size === 0) turns.delete(place.tenant);
  }

  #take(place: Place<T>, waiting: Set<Place<T>>): void {
    place.queued = false;
    waiting.delete(place);
    this.#size--;
  }

  #level(priority: number): Level<T> {
    const at = this.#levels.findIndex((level) => level.priority >= priority);
    const found = this.#levels[at];
    if (found?.priority === priority) return found;
    const level = { priority, turns: new Map<string, Set<Place<T>>>() };
    this.#levels.splice(at < 0 ? this.#levels.length : at, 0, level);
    return level;
  }
}
