import type { DropCode } from '../drop-codes';
import { BAND, type PerBand } from '../queue/band';
import type { FairRequestQueue } from '../queue/fair-request-queue';
import type { QueuedRequest } from '../queue/queued-request';
import { Capacity } from './capacity';
import type { OwnerCalls } from './owner-calls';
import type { PoolSettings } from './pool-settings';
import { WaitingTimes } from './waiting-times';

/** What a waiting room is made of. */
export interface WaitingRoomOptions {
  readonly settings: PoolSettings;
  readonly queues: PerBand<FairRequestQueue>;
  readonly calls: OwnerCalls;
  readonly nowMs: number;
}

/** The requests that wait: who may, for how long, and every way to leave unserved. */
export class WaitingRoom {
  readonly capacity: Capacity;
  readonly #settings: PoolSettings;
  readonly #queues: PerBand<FairRequestQueue>;
  readonly #calls: OwnerCalls;
  readonly #times: WaitingTimes;
  /** Requests that clean-ups found. They leave one at a time. */
  readonly #leaving: QueuedRequest[] = [];
  #sweep: Generator<readonly QueuedRequest[]> | null = null;
  #nextCleanupMs: number;
  #promoted = 0;

  constructor({ settings, queues, calls, nowMs }: WaitingRoomOptions) {
    this.#settings = settings;
    this.#queues = queues;
    this.#calls = calls;
    this.capacity = new Capacity(settings.fairRequestQueue, queues);
    this.#times = new WaitingTimes(
      settings,
      {
        expire: (request, code) => void this.drop(request, code),
        promote: (request) => this.#promote(request),
      },
      nowMs,
    );
    this.#nextCleanupMs = nowMs + settings.requestQueueController.expiryCleanupIntervalMs;
  }

  /** Requests that were moved a band up because of their age. */
  get promoted(): number {
    return this.#promoted;
  }

  /** Queues a request; returns why not, or null. Evicted requests are told after it is queued. */
  enter(request: QueuedRequest, nowMs: number): DropCode | null {
    const refusal = this.capacity.refusal(request);
    if (refusal !== null) return refusal;
    const evicted = this.capacity.makeRoom(request);
    this.capacity.onQueued(request);
    this.#queues[request.band].push(request);
    this.#times.start(request, nowMs);
    if (evicted.length > 0) this.#finishEviction(evicted);
    return null;
  }

  /** A request is off its queue, because it is dispatched. */
  leave(request: QueuedRequest): void {
    this.capacity.onLeft(request);
    this.#times.stop(request);
  }

  /** Drops a queued request; returns false if it is not queued. */
  drop(request: QueuedRequest, code: DropCode): boolean {
    if (!this.#queues[request.band].remove(request)) return false;
    this.leave(request);
    this.#calls.dropped(request, code);
    return true;
  }

  /** Drops the request of any flow; returns false if nothing is queued. */
  dropAny(code: DropCode): boolean {
    const request = this.#queues.reduce<QueuedRequest | null>(
      (found, queue) => found ?? queue.evict(),
      null,
    );
    if (request === null) return false;
    this.leave(request);
    this.#calls.dropped(request, code);
    return true;
  }

  /** Why a queued request must not be dispatched any more; null if it may. */
  endOfWait(request: QueuedRequest, nowMs: number): DropCode | null {
    return request.isCancelled ? 'client_closed' : this.#times.expiry(request, nowMs);
  }

  onPoolChanged(readyBackends: number, nowMs: number): void {
    this.#times.onPoolChanged(readyBackends, nowMs);
  }

  /**
   * Lets `handleDue` look for requests that no timer finds: in an outage, and those that are marked as
   * cancelled.
   */
  cleanUp(nowMs: number): void {
    const isDue = nowMs >= this.#nextCleanupMs;
    if (this.#sweep !== null || !(isDue || this.#times.isOutageDue(nowMs))) return;
    this.#sweep = this.#sweepAt(nowMs);
    const { expiryCleanupIntervalMs } = this.#settings.requestQueueController;
    if (isDue) this.#nextCleanupMs = nowMs + expiryCleanupIntervalMs;
  }

  /** Handles one request whose wait may be over, or looks at one flow; returns false if nothing is left. */
  handleDue(nowMs: number): boolean {
    const request = this.#leaving.pop();
    if (request !== undefined) {
      const code = this.endOfWait(request, nowMs);
      if (code !== null) this.drop(request, code);
      return true;
    }
    return this.#times.handleNext(nowMs) || this.#sweepNext();
  }

  *#sweepAt(nowMs: number): Generator<readonly QueuedRequest[]> {
    const isExpired = (request: QueuedRequest) => this.endOfWait(request, nowMs) !== null;
    for (const queue of this.#queues) yield* queue.cleanupExpired(nowMs, isExpired);
  }

  #sweepNext(): boolean {
    const step = this.#sweep?.next();
    if (step === undefined || step.done === true) {
      this.#sweep = null;
      return false;
    }
    for (const request of step.value) this.#leaving.push(request);
    return true;
  }

  #finishEviction(evicted: readonly QueuedRequest[]): void {
    for (const request of evicted) this.#times.stop(request);
    for (const request of evicted) this.#calls.dropped(request, 'evicted');
  }

  /** Moves the oldest request of a standard flow into the critical flow of the same tenant and model. */
  #promote({ flow }: QueuedRequest): QueuedRequest | null {
    const head = flow?.head ?? null;
    if (head === null || !this.capacity.hasPlaceFor(head, BAND.critical)) return null;
    this.#queues[head.band].remove(head);
    this.capacity.onLeft(head);
    head.band = BAND.critical;
    head.flow = null;
    this.#queues[head.band].pushAged(head);
    this.capacity.onQueued(head);
    this.#promoted++;
    return head;
  }
}
