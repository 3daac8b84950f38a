import type { FlowOrder, Head, Share } from './flow-order';
import { IndexedHeap } from './indexed-heap';

/** Virtual time from which on `rebase` acts: far below 2^53, so that sums keep a precision of 2^-12. */
const REBASE_ABOVE = 2 ** 40;
/** Tags move by a multiple of this, which a double holds exactly beside any tag, so no order changes. */
const REBASE_STEP = 2 ** 20;
/** Order of a competitor between `serve` and the `retag` or `leave` that follows. */
const SERVED = -1;

/**
 * Start-time fair queuing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996), extended by
 * costs that become known at the end (docs/design/flow-control.md#start-tags).
 *
 * Only the head of a competitor has a tag, its key in the heap. Finish tags of each request would charge
 * requests that are cancelled later. With S and F for the tags of a competitor and V for virtual time:
 *
 * | event                       | effect                                                           |
 * |-----------------------------|------------------------------------------------------------------|
 * | begins to compete           | F = max(V, F): no credit for the time before                     |
 * | gets a head                 | S = max(V, F)                                                    |
 * | is served, least S          | V = S, F = F + cost / weight                                     |
 * | bypass                      | the same with S = max(V, F); V stands still while others compete |
 * | correction `d`              | F = F + d / weight; if d > 0, S = max(S, F)                      |
 * | nothing queued or in flight | V = the largest F                                                |
 *
 * Invariant: V never falls, except in a rebase, and never passes the least S.
 */
export class StartTags<S extends Share> implements FlowOrder<S> {
  readonly #heap = new IndexedHeap<S>();
  #virtualTime = 0;
  /** Tags given so far. Of equal tags, the one that was given first is served first. */
  #orders = 0;
  /** At least the largest F. Refunds do not lower it: when it is used, a larger value does no harm. */
  #maxFinish = 0;

  get first(): S | undefined {
    return this.#heap.first;
  }

  get size(): number {
    return this.#heap.size;
  }

  get virtualTime(): number {
    return this.#virtualTime;
  }

  stamp(): number {
    return 0;
  }

  join(share: S): void {
    share.finish = Math.max(this.#virtualTime, share.finish);
    share.key = share.finish;
    share.order = this.#orders++;
    this.#heap.push(share);
  }

  retag(share: S): void {
    const key = Math.max(this.#virtualTime, share.finish);
    // Nothing was served, only the head has changed: the competitor keeps its place.
    if (key === share.key && share.order !== SERVED) return;
    share.key = key;
    share.order = this.#orders++;
    this.#heap.update(share);
  }

  leave(share: S): void {
    this.#heap.remove(share);
  }

  serve(share: S, head: Head, continuesTurn: boolean): void {
    if (!continuesTurn) this.#virtualTime = share.key;
    share.order = SERVED;
    this.#advance(share, head.cost);
  }

  charge(share: S, cost: number): void {
    const start = Math.max(this.#virtualTime, share.finish);
    // A dispatch is a dispatch, on arrival or later. If virtual time stood still in hours of bypasses, the
    // debt of the busiest competitor would grow all the time, and the first queue would starve it.
    if (this.#heap.size === 0) this.#virtualTime = start;
    share.finish = start;
    this.#advance(share, cost);
    this.#pushBack(share);
  }

  correct(share: S, difference: number): void {
    this.#advance(share, difference);
    // Only back: a refund counts for the heads that follow. If it moved the queued head forward, each end
    // of an overestimated request would let its flow jump ahead.
    this.#pushBack(share);
  }

  onIdle(): void {
    this.#virtualTime = Math.max(this.#virtualTime, this.#maxFinish);
  }

  rebase(shares: Iterable<S>): void {
    if (this.#virtualTime <= REBASE_ABOVE) return;
    const shift = Math.floor(this.#virtualTime / REBASE_STEP) * REBASE_STEP;
    this.#virtualTime -= shift;
    this.#maxFinish -= shift;
    for (const share of shares) {
      share.finish -= shift;
      share.key -= shift;
    }
    this.#heap.refreshKeys();
  }

  #advance(share: S, cost: number): void {
    share.finish += cost / share.weight;
    if (share.finish > this.#maxFinish) this.#maxFinish = share.finish;
  }

  #pushBack(share: S): void {
    if (share.slot === -1 || share.key >= share.finish) return;
    share.key = share.finish;
    this.#heap.update(share);
  }
}
