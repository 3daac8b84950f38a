import type { PoolSettings } from '../../core/dispatch/pool/pool-settings';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import type { BandName, FlowConfig } from '../../platform/config-gateway';

/** Without long waits, as in the API. */
const LEAST_IDLE_MS = 120_000;
/** For a request that ends in its last moment. */
const IDLE_MARGIN_MS = 10_000;

/**
 * How long a connection may be without traffic. A request may wait for its time to live and then be answered for
 * `request_timeout`, all without a byte. Those limits end it with an answer; the connection must not be cut before.
 */
export function idleConnectionMs({ fair_request_queue: queue, pools }: FlowConfig): number {
  const waitMs = Math.max(queue.queue_ttl, queue.batch_queue_ttl);
  const exchangeMs = Math.max(0, ...Object.values(pools).map((pool) => pool.request_timeout));
  return Math.max(LEAST_IDLE_MS, waitMs + exchangeMs + IDLE_MARGIN_MS);
}

/** The part of `total_capacity` that `sheddable_capacity: auto` is. */
const AUTO_SHEDDABLE = 0.9;

/** What the controllers of all pools are given (docs/design/flow-control.md#parameters). */
export function poolSettings(gateway: FlowConfig): PoolSettings {
  const { fair_request_queue: queue, request_queue_controller: controller, bands } = gateway;
  const { sheddable_capacity: batches, total_capacity: total } = queue;
  return {
    fairRequestQueue: {
      totalCapacity: total,
      flowCapacity: queue.flow_capacity,
      sheddableCapacity: batches === 'auto' ? Math.ceil(AUTO_SHEDDABLE * total) : batches,
      queueBytes: gateway.queue_bytes,
      sheddableBytes: gateway.sheddable_bytes,
      queueTtlMs: queue.queue_ttl,
      batchQueueTtlMs: queue.batch_queue_ttl,
      noBackendTtlMs: queue.no_backend_ttl,
      scheduler: queue.scheduler,
      enqueue: queue.enqueue,
    },
    requestQueueController: {
      watermarkPerBackend: controller.watermark_per_backend ?? null,
      percentageDeviationForBounds: controller.percentage_deviation_for_bounds ?? null,
      lowerBoundPerBackend: controller.lower_bound_per_backend ?? null,
      upperBoundPerBackend: controller.upper_bound_per_backend ?? null,
      maxCostPerBackend: controller.max_cost_per_backend ?? null,
      maxInFlightPerFlow: controller.max_in_flight_per_flow ?? null,
      hysteresis: controller.hysteresis,
      expiryCleanupIntervalMs: controller.expiry_cleanup_interval,
      reclaim: controller.reclaim,
    },
    bands: {
      between: bands.between,
      ceilings: bands.ceilings,
      floor: bands.floor,
      weights: bands.weights,
      promoteAfterMs: bands.promote_after ?? null,
      promotedShare: bands.promoted_share,
    },
  };
}

/** Whether the bounds of the stock are set, and not learnt. */
export function hasStaticBounds({ request_queue_controller: controller }: FlowConfig): boolean {
  return [
    controller.watermark_per_backend,
    controller.percentage_deviation_for_bounds,
    controller.lower_bound_per_backend,
    controller.upper_bound_per_backend,
  ].some((value) => value !== undefined);
}

/** Bands by their names in settings and metrics. */
export const BAND_BY_NAME: Readonly<Record<BandName, Band>> = BAND;
