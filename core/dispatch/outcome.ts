import type { BreakerFailureKind } from './breaker';
import { retryAfterMs } from './retry-after';

/** What the rules of this folder need to know about the end of one try. */
export type TryOutcome =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** `Retry-After` as it came, or null. */
      readonly retryAfter: string | null;
      /** `x-llm-d-request-dropped-reason`, lower-case, or null. */
      readonly droppedReason: string | null;
      /** `x-nightshift-dropped`, lower-case; null or absent if the request was not dropped. */
      readonly dropped?: string | null;
    }
  | {
      readonly kind: 'failure';
      readonly reason: 'connect' | 'connection' | 'timeout' | 'too_large' | 'aborted' | 'unsent';
    };

/** What a reply says about the load of its server. */
export type LoadSignal = 'success' | 'overload' | 'none';

/** A gateway's word for "its deadline has passed": the line's answer, and never retried. */
const TTL_EXPIRED = 'rejected-ttl-expired';

/** Why a gateway drops a request when it has no room for it. */
const NO_CAPACITY: readonly string[] = [
  'too_many_flows',
  'insufficient_flow_capacity',
  'queue_bytes_exceeded',
  'not_critical',
];

/** Whether the gateway gave the request up unserved, and says so: never a try, and no failure. */
export function isDropped(outcome: TryOutcome): boolean {
  return outcome.kind === 'answer' && typeof outcome.dropped === 'string';
}

/** Whether the gateway dropped the request because its time was over (contract §7.1). */
export function isDroppedAsExpired(outcome: TryOutcome): boolean {
  return (
    outcome.kind === 'answer' &&
    (outcome.status === 429 || outcome.status === 503) &&
    outcome.droppedReason === TTL_EXPIRED &&
    !isDropped(outcome)
  );
}

/**
 * What a try says about its gateway: a failure that counts, `alive` for every other answer, or
 * `unknown` (slow, aborted, dropped or unsent), which neither opens nor closes a breaker.
 */
export function gatewayHealth(outcome: TryOutcome): BreakerFailureKind | 'alive' | 'unknown' {
  if (outcome.kind === 'failure') {
    if (outcome.reason === 'connect' || outcome.reason === 'connection') return outcome.reason;
    return outcome.reason === 'too_large' ? 'alive' : 'unknown';
  }
  if (isDropped(outcome)) return 'unknown';
  if (isDroppedAsExpired(outcome)) return 'alive';
  const { status } = outcome;
  return status === 502 || status === 503 || status === 504 ? status : 'alive';
}

/**
 * What a try says about the load of its server: a 429, a 503 that names a time, or a request dropped
 * for lack of room is `overload`. A request dropped for another reason says nothing.
 */
export function loadSignal(outcome: TryOutcome): LoadSignal {
  if (outcome.kind === 'failure') return 'none';
  const { status, dropped, retryAfter } = outcome;
  if (status >= 200 && status < 300) return 'success';
  if (typeof dropped === 'string') return NO_CAPACITY.includes(dropped) ? 'overload' : 'none';
  if (isDroppedAsExpired(outcome)) return 'none';
  if (status === 429) return 'overload';
  return status === 503 && retryAfterMs(retryAfter, 0) !== null ? 'overload' : 'none';
}
