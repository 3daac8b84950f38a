import type { BreakerFailureKind } from './breaker';

/** What the rules of this folder need to know about the end of one try. */
export type TryOutcome =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** `Retry-After` as it came, or null. */
      readonly retryAfter: string | null;
      /** `x-llm-d-request-dropped-reason`, lower-case, or null. */
      readonly droppedReason: string | null;
    }
  | {
      readonly kind: 'failure';
      readonly reason: 'connect' | 'connection' | 'timeout' | 'too_large' | 'aborted' | 'unsent';
    };

/** A gateway's word for "its deadline has passed": the line's answer, and never retried. */
const TTL_EXPIRED = 'rejected-ttl-expired';

/** Whether the gateway dropped the request because its time was over (contract §7.1). */
export function isDroppedAsExpired(outcome: TryOutcome): boolean {
  return (
    outcome.kind === 'answer' &&
    (outcome.status === 429 || outcome.status === 503) &&
    outcome.droppedReason === TTL_EXPIRED
  );
}

/**
 * What a try says about its gateway: a failure that counts, `alive` for every other answer, or
 * `unknown` (slow, aborted or unsent), which neither opens nor closes a breaker (execution §3).
 */
export function gatewayHealth(outcome: TryOutcome): BreakerFailureKind | 'alive' | 'unknown' {
  if (outcome.kind === 'failure') {
    if (outcome.reason === 'connect' || outcome.reason === 'connection') return outcome.reason;
    return outcome.reason === 'too_large' ? 'alive' : 'unknown';
  }
  if (isDroppedAsExpired(outcome)) return 'alive';
  const { status } = outcome;
  return status === 502 || status === 503 || status === 504 ? status : 'alive';
}
