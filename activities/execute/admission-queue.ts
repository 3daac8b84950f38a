import { LANES_AT_ONE_WORKER } from '../../core/chunks/lanes';

/**
 * Chunks of one tenant and limiter that may wait for their first permit inside the process: those of a whole batch, even if
 * no other worker runs any.
 */
const PLACES_OF_TENANT = LANES_AT_ONE_WORKER;
/** Limit of places for all tenants. */
const PLACES = 16;
/** Limit of places for tenants that have no chunk waiting yet. */
const PLACES_WITH_TENANTS = 32;
/** Target rate, per limiter and process, for attempts of chunks that wait at the server. */
const ATTEMPTS_PER_SEC = 5;
const MIN_RETRY_MS = 200;
const MAX_RETRY_MS = 60_000;
/** A chunk that has not come back for this long no longer counts as waiting. */
const FORGET_MS = 2.5 * MAX_RETRY_MS;

/** What waits for permits of one model (`Route.limiterKey`). */
interface Limiter {
  /** Chunks that wait inside the process, by tenant. */
  readonly waiting: Map<string, number>;
  /** When each chunk that waits at the server made its last attempt here, Unix ms; oldest first. */
  readonly deferred: Map<string, number>;
}

/**
 * Decides which chunks wait for a permit inside this process and when the others come back.
 *
 * If all chunks waited at the Temporal server, a permit that is given back would stay unused until the
 * next attempt. If all waited here, a process without free permits would hold the chunks of a whole batch,
 * and workers with free permits would get none. So a few wait here and use a free permit at once. All
 * others wait at the server. The more there are, the longer each waits before its next attempt, so the
 * process sees about five attempts per second (docs/design/execution.md#waiting-inside-a-process).
 */
export class AdmissionQueue {
  readonly #limiters = new Map<string, Limiter>();

  /** Whether a chunk of `tenant` may wait inside the process. */
  hasPlace(limiter: string, tenant: string): boolean {
    const waiting = this.#limiters.get(limiter)?.waiting;
    if (waiting === undefined) return true;
    const all = [...waiting.values()].reduce((sum, count) => sum + count, 0);
    const own = waiting.get(tenant) ?? 0;
    return all < (own === 0 ? PLACES_WITH_TENANTS : PLACES) && own < PLACES_OF_TENANT;
  }

  /** Takes a place, which {@link leave} gives back. False if there is none. */
  enter(limiter: string, tenant: string): boolean {
    if (!this.hasPlace(limiter, tenant)) return false;
    const { waiting } = this.#limiter(limiter);
    waiting.set(tenant, (waiting.get(tenant) ?? 0) + 1);
    return true;
  }

  /** Gives a place back. */
  leave(limiter: string, tenant: string): void {
    const { waiting } = this.#limiter(limiter);
    const rest = (waiting.get(tenant) ?? 1) - 1;
    if (rest > 0) waiting.set(tenant, rest);
    else waiting.delete(tenant);
    this.#dropIfIdle(limiter);
  }

  /**
   * How long the chunk `key` should wait at the server before its next attempt, ms.
   *
   * @param at.random uniform in [0, 1)
   */
  retryInMs(limiter: string, key: string, at: { nowMs: number; random: number }): number {
    const { deferred } = this.#limiter(limiter);
    deferred.delete(key);
    deferred.set(key, at.nowMs);
    for (const [old, ms] of deferred) {
      if (at.nowMs - ms <= FORGET_MS) break;
      deferred.delete(old);
    }
    const shareMs = (deferred.size / ATTEMPTS_PER_SEC) * 1_000;
    const meanMs = Math.min(Math.max(shareMs, MIN_RETRY_MS), MAX_RETRY_MS);
    return Math.round(meanMs * (0.75 + at.random / 2));
  }

  /** Call it when the chunk `key` no longer waits at the server. */
  forget(limiter: string, key: string): void {
    this.#limiters.get(limiter)?.deferred.delete(key);
    this.#dropIfIdle(limiter);
  }

  #limiter(limiter: string): Limiter {
    let known = this.#limiters.get(limiter);
    if (known === undefined) {
      known = { waiting: new Map(), deferred: new Map() };
      this.#limiters.set(limiter, known);
    }
    return known;
  }

  /** Keeps the map small: a process meets an unlimited number of model names over time. */
  #dropIfIdle(limiter: string): void {
    const known = this.#limiters.get(limiter);
    if (known?.waiting.size === 0 && known.deferred.size === 0) this.#limiters.delete(limiter);
  }
}
