/** A place in a {@link WaitingLine}. */
export class Place<T> {
  readonly item: T;
  previous: Place<T> | null = null;
  next: Place<T> | null = null;

  constructor(item: T) {
    this.item = item;
  }
}

/** A first-in, first-out list; removing from anywhere and pushing to the front take O(1) steps. */
export class WaitingLine<T> {
  #first: Place<T> | null = null;
  #last: Place<T> | null = null;

  get first(): Place<T> | null {
    return this.#first;
  }

  push(place: Place<T>): void {
    place.previous = this.#last;
    if (this.#last === null) this.#first = place;
    else this.#last.next = place;
    this.#last = place;
  }

  pushFront(place: Place<T>): void {
    place.next = this.#first;
    if (this.#first === null) this.#last = place;
    else this.#first.previous = place;
    this.#first = place;
  }

  remove(place: Place<T>): void {
    const { previous, next } = place;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    place.previous = null;
    place.next = null;
  }
}
