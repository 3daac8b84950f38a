import { PRIORITY, type Priority } from '../../chunks/priority';
import { LinkedList, type Link } from './linked-list';

/** What a backlog needs of its elements. */
export interface Ranked {
  readonly priority: Priority;
  /** Place in the order of arrival. */
  readonly sequence: number;
}

/**
 * The queued requests of one flow: urgent before normal before relaxed, and first come, first served within
 * a priority. All operations take O(1) steps.
 */
export class Backlog<R extends Link<R> & Ranked> {
  readonly #normal = new LinkedList<R>();
  // Only batch lines have a priority, so most flows never need the other lists.
  #urgent: LinkedList<R> | null = null;
  #relaxed: LinkedList<R> | null = null;

  get size(): number {
    return this.#normal.size + (this.#urgent?.size ?? 0) + (this.#relaxed?.size ?? 0);
  }

  /** The request to serve next; null if there is none. */
  get head(): R | null {
    return this.#urgent?.first ?? this.#normal.first ?? this.#relaxed?.first ?? null;
  }

  /** The request that can be missed most easily: the newest of the least urgent. */
  get tail(): R | null {
    return this.#relaxed?.last ?? this.#normal.last ?? this.#urgent?.last ?? null;
  }

  /** The request that came first; null if there is none. */
  get oldest(): R | null {
    let oldest = this.#normal.first;
    for (const list of [this.#urgent, this.#relaxed]) {
      const first = list?.first ?? null;
      if (first !== null && first.sequence < (oldest?.sequence ?? Infinity)) oldest = first;
    }
    return oldest;
  }

  get hasUrgent(): boolean {
    return this.#urgent !== null && this.#urgent.size > 0;
  }

  /** The requests that meet a condition, in O(n) steps. */
  filter(matches: (request: R) => boolean): R[] {
    const found: R[] = [];
    for (const list of [this.#urgent, this.#normal, this.#relaxed]) {
      for (let request = list?.first ?? null; request !== null; request = request.next) {
        if (matches(request)) found.push(request);
      }
    }
    return found;
  }

  push(request: R): void {
    this.#listOf(request.priority).push(request);
  }

  /** Removes a request of this backlog. */
  remove(request: R): void {
    request.list?.remove(request);
  }

  #listOf(priority: Priority): LinkedList<R> {
    if (priority === PRIORITY.normal) return this.#normal;
    if (priority === PRIORITY.urgent) return (this.#urgent ??= new LinkedList());
    return (this.#relaxed ??= new LinkedList());
  }
}
