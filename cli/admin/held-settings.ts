import type { Config, GatewayConfig } from '../../platform/config-schema';
import type { FlowPagePool } from '../../platform/flow-page';
import { formatDuration } from '../../platform/units';

/** What a request reserves for its answer, beside its body (docs/design/execution.md#memory). */
const ANSWER_BYTES = 256 * 1024;
/** Less room than this for each body is probably not meant. */
const LEAST_BODY_BYTES = 16 * 1024;

/** The settings of a worker that decide how its requests wait in a gateway. */
type HeldSettings = Pick<Config, 'concurrency'>;

/** What a worker's settings look like beside those of its gateway. */
interface HeldFindings {
  /** Settings that cost lines their tries. */
  readonly errors: readonly string[];
  /** Settings that waste capacity or memory. */
  readonly warnings: readonly string[];
}

/**
 * Compares a worker with the pools of its gateway (docs/design/held-requests.md#settings-of-workers). Without pools,
 * only what the worker's own settings show.
 */
export function heldFindings(
  gateway: Pick<GatewayConfig, 'url' | 'request_timeout' | 'max_concurrency'>,
  { concurrency }: HeldSettings,
  pools: readonly FlowPagePool[],
): HeldFindings {
  const { global, per_model: perModel, in_flight_bytes: bytes } = concurrency;
  const permits = Math.min(global, perModel, gateway.max_concurrency ?? Infinity);
  const bodyBytes = Math.floor(bytes / global) - ANSWER_BYTES;
  const memory =
    bodyBytes < LEAST_BODY_BYTES
      ? [
          `concurrency.in_flight_bytes leaves ${Math.max(0, bodyBytes)} bytes for the body of each of ${global} requests: ` +
            `raise it to at least ${Math.ceil((global * (ANSWER_BYTES + LEAST_BODY_BYTES)) / 1024 ** 2)}MiB`,
        ]
      : [];
  return {
    errors: pools.flatMap((pool) => timeErrors(gateway.request_timeout, pool)),
    warnings: [
      ...pools.flatMap((pool) => timeWarnings(gateway.request_timeout, pool)),
      ...pools.flatMap((pool) => permitWarnings(permits, pool)),
      ...memory,
    ],
  };
}

function timeErrors(timeoutMs: number, { name, limits }: FlowPagePool): string[] {
  const ttlMs = limits.batch_queue_ttl_ms;
  if (ttlMs < timeoutMs / 2) return [];
  return [
    `request_timeout (${formatDuration(timeoutMs)}) must be more than twice batch_queue_ttl of the pool ${name} ` +
      `(${formatDuration(ttlMs)}), or the time in the queue costs lines their tries`,
  ];
}

function timeWarnings(timeoutMs: number, { name, limits }: FlowPagePool): string[] {
  const wantedMs = limits.request_timeout_ms + limits.batch_queue_ttl_ms;
  if (timeoutMs >= wantedMs) return [];
  return [
    `request_timeout (${formatDuration(timeoutMs)}) is less than request_timeout and batch_queue_ttl of the pool ` +
      `${name} together: raise it to ${formatDuration(wantedMs)}`,
  ];
}

function permitWarnings(
  permits: number,
  { name, limits, bounds, backends }: FlowPagePool,
): string[] {
  const learnt = backends.reduce((sum, { limit }) => sum + limit, 0);
  const capacity = bounds.mode === 'fixed' ? bounds.upper : learnt;
  if (permits > capacity + limits.sheddable_capacity) {
    return [
      `${permits} permits are more than the pool ${name} holds (sheddable_capacity ${limits.sheddable_capacity}): ` +
        'lower concurrency.per_model, or raise sheddable_capacity',
    ];
  }
  if (permits >= 2 * capacity || backends.length === 0) return [];
  const workers = Math.ceil((2 * capacity) / permits);
  return [
    `${permits} permits are less than twice the ${Math.floor(capacity)} requests that the pool ${name} takes: ` +
      `with fewer than ${workers} workers, raise concurrency.global and concurrency.per_model`,
  ];
}
