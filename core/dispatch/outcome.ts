import type { BreakerFailureKind } from './breaker';
import { dropLabel } from './drop-codes';
import { retryAfterMs } from './retry-after';

/** The end of one try: the fields that the dispatch rules need. */
export type TryOutcome =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** The `Retry-After` header, unparsed, or null. */
      readonly retryAfter: string | null;
      /** `x-llm-d-request-dropped-reason`, lower-case, or null. Of interest only without `dropped`. */
      readonly droppedReason: string | null;
      /** `x-nightshift-dropped`, lower-case; null or absent if the request was not dropped. */
      readonly dropped?: string | null;
      /** `x-should-retry: false`: another try would not end better. */
      readonly isFinal?: boolean;
    }
  | {
      readonly kind: 'failure';
      /** `held`: we closed it while the gateway held it, or it timed out there. */
      readonly reason:
        'connect' | 'connection' | 'timeout' | 'too_large' | 'aborted' | 'unsent' | 'held';
    };

/** What a reply shows about the load of its server. */
export type LoadSignal = 'success' | 'overload' | 'none';

/** A gateway other than ours gave the request up because it had waited too long, or its deadline passed. */
const TTL_EXPIRED = 'rejected-ttl-expired';

/** Drop reasons that mean a lack of capacity. */
const NO_CAPACITY: readonly string[] = [
  'too_many_flows',
  'insufficient_flow_capacity',
  'queue_bytes_exceeded',
  'not_critical',
];

/** Whether the gateway reports that it dropped the request unserved, which is neither a try nor a failure. */
export function isDropped(outcome: TryOutcome): boolean {
  return outcome.kind === 'answer' && typeof outcome.dropped === 'string';
}

/**
 * Whether the request outlived its time in the queue of a gateway that does not send
 * `x-nightshift-dropped`. That time is the gateway's own, unless the batch's deadline has passed
 * (docs/design/permits.md#dropped-requests).
 */
export function isExpiredInQueue(outcome: TryOutcome): boolean {
  return (
    outcome.kind === 'answer' &&
    (outcome.status === 429 || outcome.status === 503) &&
    outcome.droppedReason === TTL_EXPIRED &&
    !isDropped(outcome)
  );
}

/** Whether a gateway gave the request up before a model server saw it, so that it costs its line no try. */
export function isUnserved(outcome: TryOutcome): boolean {
  return isDropped(outcome) || isExpiredInQueue(outcome);
}

/** Why a gateway gave the request up unserved, as a label of metrics; null for every other outcome. */
export function dropLabelOf(outcome: TryOutcome): string | null {
  if (isExpiredInQueue(outcome)) return dropLabel('queue_ttl_expired');
  if (outcome.kind !== 'answer' || typeof outcome.dropped !== 'string') return null;
  return dropLabel(outcome.dropped);
}

/**
 * What a try shows about its gateway: a failure that counts, `alive` for every other reply, or `unknown`
 * (timed out, aborted, dropped or unsent), which neither opens nor closes a breaker.
 */
export function gatewayHealth(outcome: TryOutcome): BreakerFailureKind | 'alive' | 'unknown' {
  if (outcome.kind === 'failure') {
    if (outcome.reason === 'connect' || outcome.reason === 'connection') return outcome.reason;
    return outcome.reason === 'too_large' ? 'alive' : 'unknown';
  }
  if (isDropped(outcome)) return 'unknown';
  // A server that advises against another try has looked at the request.
  if (isExpiredInQueue(outcome) || outcome.isFinal === true) return 'alive';
  const { status } = outcome;
  return status === 502 || status === 503 || status === 504 ? status : 'alive';
}

/**
 * What a try shows about the load of its server. A 429, a 503 with a valid `Retry-After`, or a drop for
 * lack of capacity is `overload`. A drop for another reason is `none`.
 */
export function loadSignal(outcome: TryOutcome): LoadSignal {
  if (outcome.kind === 'failure') return 'none';
  const { status, dropped, retryAfter } = outcome;
  if (status >= 200 && status < 300) return 'success';
  if (typeof dropped === 'string') return NO_CAPACITY.includes(dropped) ? 'overload' : 'none';
  if (isExpiredInQueue(outcome)) return 'none';
  if (status === 429) return 'overload';
  return status === 503 && retryAfterMs(retryAfter, 0) !== null ? 'overload' : 'none';
}

/** Why a try is repeated: values of the label `cause` (docs/metrics.md#requests). */
export type RetryCause =
  | 'rate_limited'
  | 'server_error'
  | 'client_status'
  | 'dropped'
  | 'timeout'
  | 'connect'
  | 'connection';

/** The cause of a repeated try. `connect`: nothing was sent; `connection`: it broke later. */
export function retryCause(outcome: TryOutcome): RetryCause {
  if (outcome.kind === 'failure') {
    const { reason } = outcome;
    return reason === 'timeout' || reason === 'connect' ? reason : 'connection';
  }
  if (isUnserved(outcome)) return 'dropped';
  if (outcome.status === 429) return 'rate_limited';
  return outcome.status >= 500 ? 'server_error' : 'client_status';
}
