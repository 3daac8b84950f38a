/** What the signals are computed from. */
export interface Load {
  /** Requests in flight, and how many may be. */
  readonly stock: number;
  readonly fullAt: number;
  readonly readyBackends: number;
}

const MAX_RETRY_AFTER_SEC = 60;
/** If nothing was dispatched lately, as after an outage. */
const UNKNOWN_RETRY_AFTER_SEC = 5;

/**
 * How full a pool is: requests in flight divided by how many may be, 1 and above when it is full. A pool
 * without ready backends is full. Upstream load balancers and autoscalers act on it.
 */
export function saturation({ stock, fullAt, readyBackends }: Load): number {
  return readyBackends === 0 || fullAt === 0 ? 1 : stock / fullAt;
}

/**
 * Seconds after which a refused client should try again, 1 to 60: the time that the cost ahead of it takes
 * at the present rate; 5 if that is not known (docs/design/flow-control.md#back-pressure).
 */
export function retryAfterSec(costAhead: number, ratePerSec: number): number {
  if (costAhead === 0) return 1;
  if (ratePerSec === 0) return UNKNOWN_RETRY_AFTER_SEC;
  const seconds = Math.ceil(costAhead / ratePerSec);
  return Math.min(MAX_RETRY_AFTER_SEC, Math.max(1, seconds));
}
