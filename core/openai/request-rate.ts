/** The token bucket of one client. */
export interface RequestBudget {
  /** Requests left at `atMs`, with fractions; at most the requests of one minute. */
  readonly left: number;
  readonly atMs: number;
}

/** Whether one request is allowed, and the values for its rate-limit headers. */
export interface RateVerdict {
  readonly isAllowed: boolean;
  readonly budget: RequestBudget;
  /** Whole requests left after this one. */
  readonly remaining: number;
  /** Time until the bucket is full again. */
  readonly resetMs: number;
  /** Time until the next request is allowed; 0 if one is allowed now. */
  readonly retryMs: number;
}

const MINUTE_MS = 60_000;

/**
 * Takes one request from the bucket. A client that was idle may send the requests of one minute at once,
 * and then as many as the rate adds. A refused request takes nothing from the bucket. A clock that steps
 * back adds nothing (docs/design/api-contract.md#request-rate).
 */
export function takeRequest(
  before: RequestBudget | undefined,
  perMinute: number,
  nowMs: number,
): RateVerdict {
  const perMs = perMinute / MINUTE_MS;
  const elapsedMs = Math.max(0, nowMs - (before?.atMs ?? nowMs));
  const available = Math.min(perMinute, (before?.left ?? perMinute) + elapsedMs * perMs);
  const isAllowed = available >= 1;
  const left = isAllowed ? available - 1 : available;
  return {
    isAllowed,
    budget: { left, atMs: nowMs },
    remaining: Math.floor(left),
    resetMs: Math.ceil((perMinute - left) / perMs),
    retryMs: left >= 1 ? 0 : Math.ceil((1 - left) / perMs),
  };
}

/** A time in the format of OpenAI's headers: `120ms`, `6s`, `2m5s`. */
export function resetText(ms: number): string {
  if (ms > 0 && ms < 1_000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms / 1_000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
