import { PRIORITY, type Priority } from '../../chunks/priority';
import type { DropCode } from '../drop-codes';
import { BacklogEntry } from './backlog';
import { BAND, type Band } from './band';
import type { Expiring } from './expiry-wheel';
import type { Flow } from './flow';

/** A flow of {@link QueuedRequest}s. */
export type RequestFlow = Flow<QueuedRequest>;

/** How a request got to the backends: at once, by its turn, by the floor of its band, or as urgent. */
export type DispatchedBy = 'bypass' | 'queue' | 'floor' | 'promoted';

/**
 * The owner of a request. Exactly one of `dispatched` and `dropped` is called, once, possibly before the
 * call that handed the request over returns. Callbacks may call the controller.
 */
export interface RequestOwner {
  /** Send it to a backend. The owner must report its end, whatever the outcome. */
  dispatched(request: QueuedRequest, by: DispatchedBy): void;
  /** It leaves unserved and was charged nothing. */
  dropped(request: QueuedRequest, code: DropCode): void;
  /** It is in flight and its capacity is needed: abort it, answer `evicted`, and report its end as usual. */
  reclaimed?(request: QueuedRequest): void;
}

/** What a request is, as far as the queue is concerned. */
export interface RequestOptions {
  readonly tenant: string;
  readonly model: string;
  /** `standard` by default. */
  readonly band?: Band;
  /** The same for each attempt at the same work; it bounds how often that work is aborted. */
  readonly id?: string;
  /** Expected cost, in the unit of the pool: tokens, seconds of audio, or 1; above 0. */
  readonly cost: number;
  /** Bytes of the body that the owner holds while it waits; 0 by default. */
  readonly bytes?: number;
  readonly priority?: Priority;
  /** Requests of a flow with equal prefixes are served in one turn; null, the default, for none. */
  readonly prefix?: number | null;
  /** The client gives up at this time, ms; never by default. */
  readonly deadlineMs?: number;
}

/** `new`: not handed over yet. `ended`: dropped, or its exchange with the backend is over. */
export type RequestState = 'new' | 'queued' | 'dispatched' | 'ended';

/**
 * One request, from its arrival to its end. The queue keeps its own fields in it, so that queuing
 * allocates nothing.
 */
export class QueuedRequest extends BacklogEntry<QueuedRequest> implements Expiring<QueuedRequest> {
  // The first fields are those that the queue reads and writes at each step.
  readonly cost: number;
  readonly priority: Priority;
  readonly prefix: number | null;
  /** Its flow in the queue of `band`; null until it is looked up. */
  flow: RequestFlow | null = null;
  state: RequestState = 'new';
  /** Whether its flow was charged at the dispatch, so that the end corrects the charge. */
  isCharged = false;
  /** Place in the order of arrival at its queue. */
  sequence = 0;
  /** Its finish tag; unused with start tags. */
  tag = 0;
  /** The band it waits in, or waited in. Promotion by age changes it. */
  band: Band;
  /** The band whose stock it counts in while it is in flight. */
  stockBand: Band;
  readonly bytes: number;
  readonly owner: RequestOwner;
  /** Null for none. Times are whole milliseconds: V8 stores other numbers in objects of their own. */
  readonly deadlineMs: number | null;
  /** Not dispatched at or after this time, ms; null for never. */
  expiresMs: number | null;
  /** When it was queued, ms. */
  queuedAtMs = 0;
  dueTick = -1;
  previousDue: QueuedRequest | null = null;
  nextDue: QueuedRequest | null = null;
  #isCancelled = false;
  /** Set by the owner when the backend begins to answer: from then on it is not aborted for others. */
  hasAnswerBegun = false;
  readonly tenant: string;
  readonly model: string;
  readonly id: string | null;

  constructor(options: RequestOptions, owner: RequestOwner) {
    super();
    this.tenant = options.tenant;
    this.model = options.model;
    this.owner = owner;
    this.id = options.id ?? null;
    this.band = options.band ?? BAND.standard;
    this.stockBand = this.band;
    this.cost = options.cost;
    this.bytes = options.bytes ?? 0;
    this.priority = options.priority ?? PRIORITY.normal;
    this.prefix = options.prefix ?? null;
    this.deadlineMs = options.deadlineMs === undefined ? null : Math.floor(options.deadlineMs);
    this.expiresMs = this.deadlineMs;
  }

  /** Whether it must not be dispatched any more. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /**
   * Marks a queued request as cancelled without removing it. It costs one assignment, for owners that
   * cancel many at once: the request is skipped at its turn, or removed by the next clean-up.
   */
  markCancelled(): void {
    this.#isCancelled = true;
  }

  /** Ends a request that left the queue unserved, and tells its owner why. */
  evictAndCancel(reason: DropCode): void {
    this.#isCancelled = true;
    this.state = 'ended';
    this.owner.dropped(this, reason);
  }
}
