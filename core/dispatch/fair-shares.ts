/** One competitor. Its owner keeps the object; {@link FairShares} sets its numbers. */
export class Share {
  readonly weight: number;
  /** Virtual time at which its next turn begins; set while it waits. */
  start = 0;
  /** Virtual time at which its last turn ended. */
  finish = 0;
  /** Breaks ties between equal start tags: the smaller order has waited longer and is served first. */
  order = 0;
  /** Place in the heap; -1 while it does not wait. */
  at = -1;

  constructor(weight: number) {
    this.weight = weight;
  }
}

/**
 * Gives turns by weight. This is start-time fair queuing (Goyal, Vin and Cheng, "Start-time Fair Queuing",
 * SIGCOMM 1996) with turns of equal cost.
 *
 * Each waiting competitor has a start tag, a point in virtual time. The smallest tag goes first, and a
 * turn moves the tag of its owner by 1 / weight: with twice the weight, tags advance half as fast and
 * turns come twice as often. Virtual time is the start tag of the last turn. A newcomer starts there, so
 * it gets no credit for the time in which it did not wait. While two competitors both wait, their turns
 * divided by their weights differ by at most 1 / w1 + 1 / w2.
 *
 * Deficit round robin would be simpler, but it does not work here. A chunk waits for one permit at a time
 * and requests the next one as soon as it has it. Round robin forgets the deficit of a queue that runs
 * empty, so such a tenant would get one turn per round, regardless of its weight. Finish tags outlive the
 * wait: a tenant with one waiting request gets the same share as one with a thousand.
 *
 * The tags are in a heap: every operation takes O(log n) steps for n competitors.
 */
export class FairShares<S extends Share> {
  readonly #heap: S[] = [];
  #virtual = 0;
  #orders = 0;

  /** The competitor whose turn it is; undefined if none waits. */
  get first(): S | undefined {
    return this.#heap[0];
  }

  /** Starts to wait. */
  join(share: S): void {
    share.start = Math.max(this.#virtual, share.finish);
    share.order = this.#orders++;
    share.at = this.#heap.length;
    this.#heap.push(share);
    this.#up(share);
  }

  /** Stops waiting without a turn, at no cost. */
  leave(share: S): void {
    const { at } = share;
    const last = this.#heap.pop();
    share.at = -1;
    if (last === undefined || last === share) return;
    this.#put(last, at);
    this.#up(last);
    this.#down(last);
  }

  /** Gives {@link first} its turn; it keeps waiting for the next one. */
  serve(share: S): void {
    this.#virtual = share.start;
    share.finish = share.start + 1 / share.weight;
    share.start = share.finish;
    share.order = this.#orders++;
    this.#down(share);
  }

  /** Whether `share`, which does not wait, can be forgotten, because a new one would get the same tag. */
  isSpent(share: Share): boolean {
    return share.finish <= this.#virtual;
  }

  #up(share: S): void {
    while (share.at > 0) {
      const parent = this.#heap[(share.at - 1) >> 1];
      if (parent === undefined || !isBefore(share, parent)) return;
      this.#swap(share, parent);
    }
  }

  #down(share: S): void {
    for (;;) {
      const left = this.#heap[2 * share.at + 1];
      const right = this.#heap[2 * share.at + 2];
      if (left === undefined) return;
      const child = right !== undefined && isBefore(right, left) ? right : left;
      if (!isBefore(child, share)) return;
      this.#swap(child, share);
    }
  }

  #swap(a: S, b: S): void {
    const { at } = a;
    this.#put(a, b.at);
    this.#put(b, at);
  }

  #put(share: S, at: number): void {
    this.#heap[at] = share;
    share.at = at;
  }
}

function isBefore(a: Share, b: Share): boolean {
  return a.start === b.start ? a.order < b.order : a.start < b.start;
}
