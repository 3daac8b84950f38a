/** A competitor for shares; its owner keeps it, {@link FairShares} keeps its numbers. */
export class Share {
  readonly weight: number;
  /** Virtual time at which its next turn begins; set while it waits. */
  start = 0;
  /** Virtual time at which its last turn ended. */
  finish = 0;
  /** Decides between equal start tags: who has waited longer comes first. */
  order = 0;
  /** Place in the heap; -1 while it does not wait. */
  at = -1;

  constructor(weight: number) {
    this.weight = weight;
  }
}

/**
 * Turns by weight: start-time fair queuing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM
 * 1996) with turns of equal cost. Whoever waits has a start tag, the least tag goes first, and a turn
 * moves the next tag by 1 / weight. Over any time in which two both wait, their turns divided by their
 * weights differ by at most 1 / w1 + 1 / w2.
 *
 * Tags outlive a wait. Someone who waits for one turn at a time, and asks again at once, gets the same
 * share as someone with a thousand requests in line; deficit round robin would forget its weight.
 * All operations take O(log n) steps for n that wait.
 */
export class FairShares<S extends Share> {
  readonly #heap: S[] = [];
  #virtual = 0;
  #orders = 0;

  /** Whose turn it is; undefined if nobody waits. */
  get first(): S | undefined {
    return this.#heap[0];
  }

  /** Begins to wait. */
  join(share: S): void {
    share.start = Math.max(this.#virtual, share.finish);
    share.order = this.#orders++;
    share.at = this.#heap.length;
    this.#heap.push(share);
    this.#up(share);
  }

  /** Waits no longer, without a turn: costs nothing. */
  leave(share: S): void {
    const { at } = share;
    const last = this.#heap.pop();
    share.at = -1;
    if (last === undefined || last === share) return;
    this.#put(last, at);
    this.#up(last);
    this.#down(last);
  }

  /** Gives {@link first} its turn; it goes on waiting for the next one. */
  serve(share: S): void {
    this.#virtual = share.start;
    share.finish = share.start + 1 / share.weight;
    share.start = share.finish;
    share.order = this.#orders++;
    this.#down(share);
  }

  /** Whether `share`, which does not wait, could be forgotten: a new one would get the same tag. */
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
