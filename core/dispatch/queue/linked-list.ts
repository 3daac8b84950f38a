/** An element of at most one {@link LinkedList} at a time. */
export abstract class Link<L extends Link<L>> {
  previous: L | null = null;
  next: L | null = null;
  /** The list it is in; null while it is in none. */
  list: LinkedList<L> | null = null;
}

/**
 * A doubly linked list whose links are fields of its elements. Every operation takes O(1) steps, also the
 * removal of an element from the middle, and none but `toArray` allocates memory.
 *
 * What comes and goes with each request is better in such a list than in a `Set`: each time a `Set` of V8 makes room, its old
 * table keeps the new one and all that is in it, so one table in the old generation makes every later one old.
 */
export class LinkedList<L extends Link<L>> {
  #first: L | null = null;
  #last: L | null = null;
  #size = 0;

  get first(): L | null {
    return this.#first;
  }

  get last(): L | null {
    return this.#last;
  }

  get size(): number {
    return this.#size;
  }

  /** Its elements, the first one first, as they are now. */
  toArray(): L[] {
    const links: L[] = [];
    for (let link = this.#first; link !== null; link = link.next) links.push(link);
    return links;
  }

  /** Appends an element that is in no list. */
  push(link: L): void {
    link.list = this;
    link.previous = this.#last;
    if (this.#last === null) this.#first = link;
    else this.#last.next = link;
    this.#last = link;
    this.#size++;
  }

  /** Puts an element that is in no list before all others. */
  pushFront(link: L): void {
    link.list = this;
    link.next = this.#first;
    if (this.#first === null) this.#last = link;
    else this.#first.previous = link;
    this.#first = link;
    this.#size++;
  }

  /** Puts an element that is in no list right behind one that is in this list. */
  insertAfter(before: L, link: L): void {
    const { next } = before;
    if (next === null) return this.push(link);
    link.list = this;
    link.previous = before;
    link.next = next;
    before.next = link;
    next.previous = link;
    this.#size++;
  }

  /** Removes an element; returns false if it is not in this list. */
  remove(link: L): boolean {
    if (link.list !== this) return false;
    const { previous, next } = link;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    link.previous = null;
    link.next = null;
    link.list = null;
    this.#size--;
    return true;
  }
}
