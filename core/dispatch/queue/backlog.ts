import { PRIORITY, type Priority } from '../../chunks/priority';
import { Share } from './flow-order';

/** An element of at most one {@link Backlog} at a time. */
export abstract class BacklogEntry<R> {
  previous: R | null = null;
  next: R | null = null;
  abstract readonly priority: Priority;
  /** Place in the order of arrival. */
  abstract readonly sequence: number;
}

/**
 * A competitor and its queued requests: urgent before normal before relaxed, and first come, first served
 * within a priority. All operations but `filter` and `insert` take O(1) steps.
 *
 * The requests form one doubly linked list, with the end of each priority: the last request that is at least
 * as urgent. So the end of a priority that has no requests is the end of the next higher one.
 *
 * It extends the share instead of being a part of it: with thousands of flows, each object on the way to a
 * request is one more miss of the processor's cache.
 */
export abstract class Backlog<R extends BacklogEntry<R>> extends Share {
  #first: R | null = null;
  #lastUrgent: R | null = null;
  #lastNormal: R | null = null;
  #last: R | null = null;
  /** Where the search for the next place of {@link insert} begins. */
  #lastInserted: R | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The request to serve next; null if there is none. */
  get head(): R | null {
    return this.#first;
  }

  /** The request that can be missed most easily: the newest of the least urgent. */
  get tail(): R | null {
    return this.#last;
  }

  /** The request that came first; null if there is none. */
  get oldest(): R | null {
    let oldest = this.#first;
    for (const end of [this.#lastUrgent, this.#lastNormal]) {
      const first = end?.next ?? null;
      if (first !== null && first.sequence < (oldest?.sequence ?? Infinity)) oldest = first;
    }
    return oldest;
  }

  get hasUrgent(): boolean {
    return this.#lastUrgent !== null;
  }

  /** The requests that meet a condition, in O(n) steps. */
  filter(matches: (request: R) => boolean): R[] {
    const found: R[] = [];
    for (let request = this.#first; request !== null; request = request.next) {
      if (matches(request)) found.push(request);
    }
    return found;
  }

  /** Adds a request that is in no backlog. */
  push(request: R): void {
    this.#link(request, this.#endOf(request.priority));
  }

  /**
   * Adds a request that is in no backlog before the first of its priority that is later. If requests are inserted in
   * their order, n of them take O(n) steps together, since each search begins at the request before.
   */
  insert(request: R, isLater: (one: R) => boolean): void {
    const { priority } = request;
    let before = this.#endOf(priority);
    if (before !== null && before.priority === priority && isLater(before)) {
      before = this.#searchStart(priority, isLater);
      for (let next = this.#after(before); next !== null && !isLater(next); next = next.next) {
        before = next;
      }
    }
    this.#link(request, before);
    this.#lastInserted = request;
  }

  /** Removes a request of this backlog. */
  remove(request: R): void {
    const { previous, next } = request;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next !== null) next.previous = previous;
    if (this.#lastUrgent === request) this.#lastUrgent = previous;
    if (this.#lastNormal === request) this.#lastNormal = previous;
    if (this.#last === request) this.#last = previous;
    if (this.#lastInserted === request) this.#lastInserted = previous;
    request.previous = null;
    request.next = null;
    this.#size--;
  }

  /** @param before the request after which it goes; null if it becomes the first */
  #link(request: R, before: R | null): void {
    const { priority } = request;
    const after = this.#after(before);
    request.previous = before;
    request.next = after;
    if (before === null) this.#first = request;
    else before.next = request;
    if (after !== null) after.previous = request;
    if (priority === PRIORITY.urgent && this.#lastUrgent === before) this.#lastUrgent = request;
    if (priority !== PRIORITY.relaxed && this.#lastNormal === before) this.#lastNormal = request;
    if (this.#last === before) this.#last = request;
    this.#size++;
  }

  #after(before: R | null): R | null {
    return before === null ? this.#first : before.next;
  }

  /** A request that is not later, or the last one of a higher priority. */
  #searchStart(priority: Priority, isLater: (one: R) => boolean): R | null {
    const last = this.#lastInserted;
    if (last !== null && last.priority === priority && !isLater(last)) return last;
    if (priority === PRIORITY.urgent) return null;
    return priority === PRIORITY.normal ? this.#lastUrgent : this.#lastNormal;
  }

  #endOf(priority: Priority): R | null {
    if (priority === PRIORITY.normal) return this.#lastNormal;
    return priority === PRIORITY.urgent ? this.#lastUrgent : this.#last;
  }
}
