import type { DropCode } from '../drop-codes';
import { BAND, type Band, type PerBand } from '../queue/band';
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
    const evicted = this.capacity.makeRoom(request.band, { requests: 1, bytes: request.bytes });
    this.capacity.onQueued(request);
    this.#queues[request.band].push(request);
    this.#times.start(request, nowMs);
    this.#finishEviction(evicted);
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

  /** Why a queued request must not be dispatched any more; null if it may. */
  endOfWait(request: QueuedRequest, nowMs: number): DropCode | null {
    return request.isCancelled ? 'client_closed' : this.#times.expiry(request, nowMs);
  }

  onPoolChanged(readyBackends: number, nowMs: number): void {
    this.#times.onPoolChanged(readyBackends, nowMs);
  }

  /** Looks for requests that no timer finds: in an outage, and those that are marked as cancelled. */
  cleanUp(nowMs: number): void {
    if (nowMs >= this.#nextCleanupMs) {
      this.#nextCleanupMs = nowMs + this.#settings.requestQueueController.expiryCleanupIntervalMs;
      for (const queue of this.#queues) this.#letLeave(queue.cleanupExpired(nowMs));
    }
    if (!this.#times.isOutageDue(nowMs)) return;
    for (const queue of this.#queues) {
      this.#letLeave(queue.select((request) => this.endOfWait(request, nowMs) !== null));
    }
  }

  /** Handles one request whose wait may be over; returns false if there is none. */
  handleDue(nowMs: number): boolean {
    const request = this.#leaving.pop();
    if (request === undefined) return this.#times.handleNext(nowMs);
    const code = this.endOfWait(request, nowMs);
    if (code !== null) this.drop(request, code);
    return true;
  }

  /** Reserves bytes for a body that is being received; returns why not, or null. */
  reserve(band: Band, bytes: number): DropCode | null {
    const refusal = this.capacity.refusalByBytes(band, bytes);
    if (refusal !== null) return refusal;
    const evicted = this.capacity.makeRoom(band, { requests: 0, bytes });
    this.capacity.addReceived(band, bytes);
    this.#finishEviction(evicted);
    return null;
  }

  #letLeave(found: readonly QueuedRequest[]): void {
    for (const request of found) this.#leaving.push(request);
  }

  #finishEviction(evicted: readonly QueuedRequest[]): void {
    for (const request of evicted) this.#times.stop(request);
    for (const request of evicted) this.#calls.dropped(request, 'evicted');
  }

  /** Moves the oldest request of a standard flow into the critical flow of the same tenant and model. */
  #promote({ flow }: QueuedRequest): QueuedRequest | null {
    const head = flow?.backlog.head ?? null;
    if (head === null || !this.capacity.hasPlaceFor(head, BAND.critical)) return null;
    this.#queues[head.band].remove(head);
    this.capacity.onLeft(head);
    head.band = BAND.critical;
    this.#queues[head.band].push(head);
    this.capacity.onQueued(head);
    this.#promoted++;
    return head;
  }
}
