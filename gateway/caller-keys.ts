import type { Authenticator, Caller } from '../http/authentication/authenticator';
import { isNightshiftError } from '../core/errors';

/** Looks up an API key; null if it is unknown, revoked, or expired. */
export type KeyLookUp = (key: string) => Promise<Caller | null>;

interface Known {
  readonly caller: Caller | null;
  readonly atMs: number;
}

const FRESH_MS = 60_000;
/** How long a known key works while the database is away. */
const STALE_MS = 600_000;
/** After a failed look-up, known keys are not looked up for so long: each would wait for its time limit. */
const AWAY_MS = 5_000;
const MAX_KEYS = 10_000;

/**
 * Remembers API keys, so that a request costs no statement and the gateway outlasts a restart of PostgreSQL. A revoked
 * key works for up to a minute longer (docs/design/gateway.md#callers).
 */
export class CallerKeys implements Authenticator {
  readonly #lookUp: KeyLookUp;
  readonly #now: () => number;
  readonly #valid = new RecentKeys();
  /** Apart from the valid ones: a client that tries many keys must not push those out. */
  readonly #refused = new RecentKeys();
  /** Look-ups that run, by key. */
  readonly #running = new Map<string, Promise<Caller | null>>();
  #awayUntilMs = -Infinity;

  constructor(lookUp: KeyLookUp, now: () => number) {
    this.#lookUp = lookUp;
    this.#now = now;
  }

  async authenticate(key: string): Promise<Caller | null> {
    const known = this.#valid.get(key) ?? this.#refused.get(key);
    const ageMs = this.#now() - (known?.atMs ?? -Infinity);
    if (known !== undefined && ageMs < FRESH_MS) return known.caller;
    const stale = ageMs < STALE_MS ? (known?.caller ?? null) : null;
    if (stale !== null && this.#now() < this.#awayUntilMs) return stale;
    try {
      return await this.#look(key);
    } catch (error) {
      if (!isNightshiftError(error, 'postgres_unavailable')) throw error;
      this.#awayUntilMs = this.#now() + AWAY_MS;
      if (stale === null) throw error;
      return stale;
    }
  }

  /** Requests that come together share one look-up. */
  #look(key: string): Promise<Caller | null> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const atMs = this.#now();
    const started = this.#lookUp(key)
      .then((caller) => {
        this.#remember(key, { caller, atMs });
        return caller;
      })
      .finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  #remember(key: string, known: Known): void {
    const isValid = known.caller !== null;
    (isValid ? this.#refused : this.#valid).delete(key);
    (isValid ? this.#valid : this.#refused).set(key, known);
  }
}

/** The keys that were looked up last. */
class RecentKeys {
  readonly #known = new Map<string, Known>();

  get(key: string): Known | undefined {
    return this.#known.get(key);
  }

  delete(key: string): void {
    this.#known.delete(key);
  }

  set(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_KEYS && oldest !== undefined) this.#known.delete(oldest);
  }
}
