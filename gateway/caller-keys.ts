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
const MAX_KEYS = 10_000;

/**
 * Remembers API keys, so that a request costs no statement and the gateway outlasts a restart of PostgreSQL. A revoked
 * key works for up to a minute longer (docs/design/gateway.md#callers).
 */
export class CallerKeys implements Authenticator {
  readonly #lookUp: KeyLookUp;
  readonly #now: () => number;
  /** The least recently looked up one first. */
  readonly #known = new Map<string, Known>();

  constructor(lookUp: KeyLookUp, now: () => number) {
    this.#lookUp = lookUp;
    this.#now = now;
  }

  async authenticate(key: string): Promise<Caller | null> {
    const known = this.#known.get(key);
    const nowMs = this.#now();
    if (known !== undefined && nowMs - known.atMs < FRESH_MS) return known.caller;
    try {
      const caller = await this.#lookUp(key);
      this.#remember(key, { caller, atMs: nowMs });
      return caller;
    } catch (error) {
      const isAway = isNightshiftError(error, 'postgres_unavailable');
      if (!isAway || !known?.caller || nowMs - known.atMs >= STALE_MS) throw error;
      return known.caller;
    }
  }

  #remember(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KEYS) return;
      this.#known.delete(oldest);
    }
  }
}
