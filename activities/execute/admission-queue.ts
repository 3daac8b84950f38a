/** Chunks of one limiter that wait for their first permit in a process, whoever they belong to. */
const PLACES = 4;
/** A tenant of which no chunk waits yet gets a place beyond those, while there are fewer than so many. */
const PLACES_WITH_TENANTS = 16;
/** Attempts of waiting chunks that a process is to see in a second, for each limiter. */
const ATTEMPTS_PER_SEC = 5;
const MIN_RETRY_MS = 200;
const MAX_RETRY_MS = 60_000;
/** A chunk that has not come again for so long waits no more. */
const FORGET_MS = 2.5 * MAX_RETRY_MS;

interface Limiter {
  /** Chunks that stand in line for a permit, by tenant. */
  readonly inLine: Map<string, number>;
  /** When each chunk that found no place came last, ms; oldest first. */
  readonly turnedAway: Map<string, number>;
}

/**
 * Who may wait for a permit inside this process, and when the others should come again. A few chunks
 * stand in line, so that a permit that is given back is used at once; all others wait at the server,
 * and the more of them there are the longer each one stays away, so that waiting costs next to nothing.
 */
export class AdmissionQueue {
  readonly #limiters = new Map<string, Limiter>();

  hasPlace(limiter: string, tenant: string): boolean {
    const inLine = this.#limiters.get(limiter)?.inLine;
    if (inLine === undefined) return true;
    const all = [...inLine.values()].reduce((sum, count) => sum + count, 0);
    return all < PLACES || (!inLine.has(tenant) && all < PLACES_WITH_TENANTS);
  }

  /** Takes a place; to be followed by one {@link leave}. False: there is none. */
  enter(limiter: string, tenant: string): boolean {
    if (!this.hasPlace(limiter, tenant)) return false;
    const { inLine } = this.#limiter(limiter);
    inLine.set(tenant, (inLine.get(tenant) ?? 0) + 1);
    return true;
  }

  leave(limiter: string, tenant: string): void {
    const { inLine } = this.#limiter(limiter);
    const rest = (inLine.get(tenant) ?? 1) - 1;
    if (rest > 0) inLine.set(tenant, rest);
    else inLine.delete(tenant);
    this.#forgetIfIdle(limiter);
  }

  /**
   * How long the chunk `key` should stay away before it tries again.
   *
   * @param random uniform in [0, 1)
   */
  retryInMs(limiter: string, key: string, at: { nowMs: number; random: number }): number {
    const { turnedAway } = this.#limiter(limiter);
    turnedAway.delete(key);
    turnedAway.set(key, at.nowMs);
    for (const [old, ms] of turnedAway) {
      if (at.nowMs - ms <= FORGET_MS) break;
      turnedAway.delete(old);
    }
    const shareMs = (turnedAway.size / ATTEMPTS_PER_SEC) * 1_000;
    const meanMs = Math.min(Math.max(shareMs, MIN_RETRY_MS), MAX_RETRY_MS);
    return Math.round(meanMs * (0.75 + at.random / 2));
  }

  /** The chunk `key` waits no longer. */
  forget(limiter: string, key: string): void {
    this.#limiters.get(limiter)?.turnedAway.delete(key);
    this.#forgetIfIdle(limiter);
  }

  #limiter(limiter: string): Limiter {
    let known = this.#limiters.get(limiter);
    if (known === undefined) {
      known = { inLine: new Map(), turnedAway: new Map() };
      this.#limiters.set(limiter, known);
    }
    return known;
  }

  /** Any number of model names may pass by over the months. */
  #forgetIfIdle(limiter: string): void {
    const known = this.#limiters.get(limiter);
    if (known?.inLine.size === 0 && known.turnedAway.size === 0) this.#limiters.delete(limiter);
  }
}
