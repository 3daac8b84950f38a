import type { DropCode } from '../drop-codes';
import { BAND } from '../queue/band';
import type { QueuedRequest } from '../queue/queued-request';
import { ExpiryWheel, TICK_MS } from '../queue/expiry-wheel';
import type { PoolSettings } from './pool-settings';

/** What becomes of requests that have waited long enough. */
export interface WaitingActions {
  expire(request: QueuedRequest, code: DropCode): void;
  /** Moves the oldest request of the flow of `request` one band up, and returns it; null without a place. */
  promote(request: QueuedRequest): QueuedRequest | null;
}

/** How long requests wait: times to live, deadlines of clients, promotion by age, pools without backends. */
export class WaitingTimes {
  readonly #settings: PoolSettings;
  readonly #actions: WaitingActions;
  readonly #wheel: ExpiryWheel<QueuedRequest>;
  /** Since when no backend is ready, ms; null while one is. */
  #noBackendSinceMs: number | null = null;

  constructor(settings: PoolSettings, actions: WaitingActions, nowMs: number) {
    this.#settings = settings;
    this.#actions = actions;
    this.#wheel = new ExpiryWheel(nowMs);
    this.#noBackendSinceMs = nowMs;
  }

  onPoolChanged(readyBackends: number, nowMs: number): void {
    if (readyBackends > 0) this.#noBackendSinceMs = null;
    else this.#noBackendSinceMs ??= nowMs;
  }

  /** Starts the time to live of a request that is being queued. */
  start(request: QueuedRequest, nowMs: number): void {
    const { queueTtlMs, batchQueueTtlMs } = this.#settings.fairRequestQueue;
    const ttlMs = request.band === BAND.sheddable ? batchQueueTtlMs : queueTtlMs;
    const queuedAtMs = Math.floor(nowMs);
    request.queuedAtMs = queuedAtMs;
    request.expiresMs = Math.min(request.deadlineMs ?? Infinity, queuedAtMs + ttlMs);
    this.#wheel.schedule(request, this.#nextDueMs(request));
  }

  stop(request: QueuedRequest): void {
    this.#wheel.cancel(request);
  }

  /** Why a request may not wait any longer; null if it may. */
  expiry(request: QueuedRequest, nowMs: number): DropCode | null {
    if (request.deadlineMs !== null && nowMs >= request.deadlineMs) return 'deadline_exceeded';
    const isOver = nowMs >= expiryOf(request);
    if (this.#noBackendSinceMs === null) return isOver ? 'queue_ttl_expired' : null;
    return isOver || nowMs >= this.#noBackendDueMs(request) ? 'no_backends' : null;
  }

  /** Whether requests may be due because no backend is ready. */
  isOutageDue(nowMs: number): boolean {
    const sinceMs = this.#noBackendSinceMs;
    return sinceMs !== null && nowMs >= sinceMs + this.#settings.fairRequestQueue.noBackendTtlMs;
  }

  /** Handles one request that is due; returns false if none is. */
  handleNext(nowMs: number): boolean {
    const request = this.#wheel.popDue(nowMs);
    if (request === null) return false;
    const code = this.expiry(request, nowMs);
    if (code !== null) this.#actions.expire(request, code);
    else if (nowMs >= this.#promoteAtMs(request)) this.#promote(request, nowMs);
    else this.#wheel.schedule(request, this.#nextDueMs(request));
    return true;
  }

  /**
   * The oldest requests of the flow move, up to the due one: older ones that found no place before may be
   * due in the same tick, after it. If there is no place, the next tick tries again.
   */
  #promote(request: QueuedRequest, nowMs: number): void {
    for (
      let moved = this.#actions.promote(request);
      moved;
      moved = this.#actions.promote(request)
    ) {
      this.#wheel.schedule(moved, expiryOf(moved));
      if (moved === request) return;
    }
    this.#wheel.schedule(request, nowMs + TICK_MS);
  }

  #nextDueMs(request: QueuedRequest): number {
    return Math.min(expiryOf(request), this.#promoteAtMs(request));
  }

  #promoteAtMs({ band, queuedAtMs }: QueuedRequest): number {
    const { promoteAfterMs } = this.#settings.bands;
    if (promoteAfterMs === null || band !== BAND.standard) return Infinity;
    return queuedAtMs + promoteAfterMs;
  }

  #noBackendDueMs({ queuedAtMs }: QueuedRequest): number {
    const sinceMs = Math.max(queuedAtMs, this.#noBackendSinceMs ?? Infinity);
    return sinceMs + this.#settings.fairRequestQueue.noBackendTtlMs;
  }
}

function expiryOf({ expiresMs }: QueuedRequest): number {
  return expiresMs ?? Infinity;
}
