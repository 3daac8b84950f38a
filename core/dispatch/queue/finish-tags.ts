import type { FlowOrder, Head, Share } from './flow-order';
import { IndexedHeap } from './indexed-heap';

/**
 * Weighted fair queuing with finish tags, as the first description of this queue defines it
 * (docs/design/flow-control.md#finish-tags). Each request gets its tag on arrival:
 *
 *     tag = max(virtualTime, lastVirFinishTime of its flow) + requestSize / weight
 *
 * The least tag is served next, and virtual time is the tag of the request that was served last. A request
 * that leaves unserved stays charged. A bypass is free. `StartTags` has neither defect.
 */
export class FinishTags<S extends Share> implements FlowOrder<S> {
  readonly #heap = new IndexedHeap<S>();
  #virtualTime = 0;

  get first(): S | undefined {
    return this.#heap.first;
  }

  get size(): number {
    return this.#heap.size;
  }

  stamp(share: S, cost: number): number {
    share.finish = Math.max(this.#virtualTime, share.finish) + cost / share.weight;
    return share.finish;
  }

  join(share: S, head: Head): void {
    share.key = head.tag;
    share.order = head.sequence;
    this.#heap.push(share);
  }

  retag(share: S, head: Head): void {
    share.key = head.tag;
    share.order = head.sequence;
    this.#heap.update(share);
  }

  leave(share: S): void {
    this.#heap.remove(share);
  }

  serve(_share: S, head: Head): void {
    // Priorities inside a flow may serve a later tag first. Virtual time does not step back then.
    this.#virtualTime = Math.max(this.#virtualTime, head.tag);
  }

  charge(): void {}

  correct(): void {}

  onIdle(): void {}

  /** Requests carry tags, so they cannot be moved. At 10^9 a second, 2^53 is reached after 100 days. */
  rebase(): void {}
}
