/** What the table says of one code. */
interface Drop {
  /** The name that the first description of the queue gives the error; null if it has none. */
  readonly error: string | null;
  /** HTTP status of the answer. */
  readonly status: number;
  /** Whether contention is the cause, so that the policy `contended` answers 429. */
  readonly isContention: boolean;
  /** Whether the answer says that the request was given up unserved (`x-nightshift-dropped`). */
  readonly isDrop: boolean;
  /** Value of `x-llm-d-request-dropped-reason`; null for none. */
  readonly reason: string | null;
  /** `Retry-After`, s, if the wait does not depend on the queue; null if it does. */
  readonly retryAfterSec: number | null;
}

/**
 * Why a request leaves the queue unserved (docs/design/flow-control.md#errors). Codes are stable: metrics
 * and answers carry them.
 */
export const DROP_CODES = {
  too_many_flows: drop(503, 'rejected-saturated', { error: 'ErrTooManyFlows', isContention: true }),
  insufficient_flow_capacity: drop(503, 'rejected-saturated', {
    ...{ error: 'ErrInsufficientFlowCapacity', isContention: true },
  }),
  queue_bytes_exceeded: drop(503, 'rejected-saturated', { isContention: true }),
  queue_ttl_expired: drop(503, 'rejected-saturated', {
    ...{ error: 'ErrExpiredTTL', isContention: true },
  }),
  not_critical: drop(503, 'rejected-saturated'),
  no_backends: drop(503, 'rejected-no-endpoints', { retryAfterSec: 5 }),
  shutting_down: drop(503, 'rejected-shutting-down', { retryAfterSec: 1 }),
  evicted: drop(503, 'evicted'),
  deadline_exceeded: drop(504, 'rejected-ttl-expired'),
  client_closed: drop(499, null, { isDrop: false }),
  cancelled: drop(499, null, { isDrop: false }),
  internal: drop(500, null, { isDrop: false }),
} as const satisfies Record<string, Drop>;

/** A code of {@link DROP_CODES}. */
export type DropCode = keyof typeof DROP_CODES;

/** A code of {@link DROP_CODES}, or why a backend did not answer a request that was sent to it. */
export type FaultCode =
  | DropCode
  | 'backend_unreachable'
  | 'backend_lost'
  | 'backend_timeout'
  | 'backend_failed'
  | 'backend_exhausted';

/** All codes of requests that got no answer of a backend. */
export const FAULT_CODES: readonly FaultCode[] = [
  ...(Object.keys(DROP_CODES) as DropCode[]),
  'backend_unreachable',
  'backend_lost',
  'backend_timeout',
  'backend_failed',
  'backend_exhausted',
];

/** Values of the label `code` of dropped requests (docs/metrics.md#requests). */
export const DROP_LABELS: ReadonlySet<string> = new Set([
  ...Object.keys(DROP_CODES),
  'backend_unreachable',
  'other',
]);

/** The label of a code that a gateway sent. Gateways choose their codes, so unknown ones are `other`. */
export function dropLabel(code: string): string {
  return DROP_LABELS.has(code) ? code : 'other';
}

/** `seed`: contention is a 503. `contended`: it is a 429, as long as a backend is ready. */
export type StatusPolicy = 'seed' | 'contended';

/** The HTTP status of the answer to a request that was dropped with `code`. */
export function dropStatus(
  code: DropCode,
  { policy, readyBackends }: { readonly policy: StatusPolicy; readonly readyBackends: number },
): number {
  const { status, isContention } = DROP_CODES[code];
  return policy === 'contended' && isContention && readyBackends > 0 ? 429 : status;
}

function drop(status: number, reason: string | null, rest: Partial<Drop> = {}): Drop {
  const usual = { error: null, isContention: false, isDrop: true, retryAfterSec: null };
  return { ...usual, ...rest, status, reason };
}
