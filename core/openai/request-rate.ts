/** What one client may still ask: a bucket of requests that fills up at a steady rate. */
export interface RequestBudget {
  /** Requests left at `atMs`, with fractions; at most those of a minute. */
  readonly left: number;
  readonly atMs: number;
}

/** What became of one request. */
export interface RateVerdict {
  readonly isAllowed: boolean;
  readonly budget: RequestBudget;
  /** Whole requests left after this one. */
  readonly remaining: number;
  /** Time until all requests of a minute are there again. */
  readonly resetMs: number;
  /** Time until the next request is allowed; 0 if one is allowed now. */
  readonly retryMs: number;
}

const MINUTE_MS = 60_000;

/**
 * Takes one request from the budget. A client that was quiet may send the requests of a minute at once,
 * and then as many as the rate gives back. A refused request costs nothing. A clock that steps back
 * gives back nothing.
 */
export function takeRequest(
  before: RequestBudget | undefined,
  perMinute: number,
  nowMs: number,
): RateVerdict {
  const perMs = perMinute / MINUTE_MS;
  const elapsedMs = Math.max(0, nowMs - (before?.atMs ?? nowMs));
  const there = Math.min(perMinute, (before?.left ?? perMinute) + elapsedMs * perMs);
  const isAllowed = there >= 1;
  const left = isAllowed ? there - 1 : there;
  return {
    isAllowed,
    budget: { left, atMs: nowMs },
    remaining: Math.floor(left),
    resetMs: Math.ceil((perMinute - left) / perMs),
    retryMs: left >= 1 ? 0 : Math.ceil((1 - left) / perMs),
  };
}

/** A time as OpenAI's headers write it: `120ms`, `6s`, `2m5s`. */
export function resetText(ms: number): string {
  if (ms > 0 && ms < 1_000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 1_000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
