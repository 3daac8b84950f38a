import { HeapEntry } from './indexed-heap';

/** A competitor: its weight, and the tags that a {@link FlowOrder} keeps in it. */
export class Share extends HeapEntry {
  /** Its part of the service relative to the others; above 0. */
  weight: number;
  /** Virtual time up to which it was served. */
  finish = 0;

  constructor(weight: number) {
    super();
    this.weight = weight;
  }
}

/** What an order needs of the request that its competitor serves next. */
export interface Head {
  /** Place in the order of arrival. It breaks ties between equal tags. */
  readonly sequence: number;
  /** The charge for serving it. */
  readonly cost: number;
  /** What `stamp` returned for it. */
  readonly tag: number;
}

/**
 * Decides which of several competitors is served next, so that their service divided by their weights stays
 * equal. There are two: `StartTags` and `FinishTags`.
 */
export interface FlowOrder<S extends Share> {
  /** The competitor to serve next; undefined if none competes. */
  readonly first: S | undefined;
  /** Number of competitors. */
  readonly size: number;
  /** Called once for each request that arrives; the result becomes its tag. */
  stamp(share: S, cost: number): number;
  /** `share` begins to compete. */
  join(share: S, head: Head): void;
  /** A competitor has another head, for any reason. */
  retag(share: S, head: Head): void;
  /** `share` stops competing. It is charged nothing for that. */
  leave(share: S): void;
  /**
   * Charges a competitor for its head. `retag` or `leave` must follow. If `continuesTurn`, the request
   * belongs to the turn of the one before it, so virtual time stands still.
   */
  serve(share: S, head: Head, continuesTurn: boolean): void;
  /** Charges `share` for a request that is served outside the order, and keeps its place in it. */
  charge(share: S, cost: number): void;
  /** Corrects what `share` was charged: a positive `difference` was missing, a negative one is refunded. */
  correct(share: S, difference: number): void;
  /** Nothing is queued or in flight, so nobody has to wait for the debt of another. */
  onIdle(): void;
  /** Moves all tags closer to 0 if they are large. `shares` are all, competing or not. */
  rebase(shares: Iterable<S>): void;
}
