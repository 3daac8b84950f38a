/** How long the requests of a chunk may be held by a gateway before it leaves without an answer, ms. */
export const MAX_HOLD_MS = 30 * 60_000;

/** Reading plan and journal, the grace of held requests, sealing and releasing, ms. */
const ATTEMPT_OVERHEAD_MS = 60_000;

/** Longest wait of a chunk for its first permit inside a worker, beside its time slice, ms. */
const PERMIT_WAIT_MS = 30_000;

/** How long an attempt at a chunk may take that sends for `sendingMs`, ms. */
export function attemptMs(limits: {
  readonly sendingMs: number;
  readonly requestTimeoutMs: number;
}): number {
  return limits.sendingMs + limits.requestTimeoutMs + PERMIT_WAIT_MS + ATTEMPT_OVERHEAD_MS;
}

/** What decides how long a chunk may be held. All in ms. */
export interface HoldLimitInput {
  readonly timeSliceMs: number;
  /** After this time Temporal ends the attempt as failed. */
  readonly attemptLimitMs: number;
  /** `request_timeout` of the gateway: a request that was just dispatched may take so long. */
  readonly requestTimeoutMs: number;
}

/**
 * How long after its beginning an attempt takes no new request, even if nothing was answered, ms: at most
 * {@link MAX_HOLD_MS}, so early that its last requests can end, and not before the end of its time slice
 * (docs/design/held-requests.md#held-chunks).
 */
export function holdLimitMs(input: HoldLimitInput): number {
  const { timeSliceMs, attemptLimitMs, requestTimeoutMs } = input;
  const leftMs = attemptLimitMs - requestTimeoutMs - ATTEMPT_OVERHEAD_MS;
  return Math.max(timeSliceMs, Math.min(MAX_HOLD_MS, leftMs));
}
