import type { PerBand } from '../queue/band';

/** `gateway.fair_request_queue`: what may wait, and for how long. */
export interface FairRequestQueueSettings {
  /** `total_capacity`: queued requests of all flows, ≥ 1. */
  readonly totalCapacity: number;
  /** `flow_capacity`: queued requests of one critical or standard flow, 1 … `totalCapacity`. */
  readonly flowCapacity: number;
  /** `sheddable_capacity`: queued sheddable requests, 1 … `totalCapacity`. */
  readonly sheddableCapacity: number;
  /** `queue_bytes`: bodies of queued requests. */
  readonly queueBytes: number;
  /** `sheddable_bytes`: the part of `queueBytes` that sheddable requests may use. */
  readonly sheddableBytes: number;
  /** `queue_ttl`: how long critical and standard requests may wait, ms, > 0. */
  readonly queueTtlMs: number;
  /** `batch_queue_ttl`: how long sheddable requests may wait, ms, > 0. */
  readonly batchQueueTtlMs: number;
  /** `no_backend_ttl`: how long requests wait while no backend is ready, ms, > 0. */
  readonly noBackendTtlMs: number;
  /** `scheduler`: start tags, or finish tags as first described. */
  readonly scheduler: 'start' | 'finish';
  /** `enqueue`: whether all requests may wait, or critical ones only. */
  readonly enqueue: 'all' | 'critical';
}

/**
 * `gateway.request_queue_controller`: how many requests may be in flight. The bounds are static as soon as
 * one of the first four keys is set, otherwise adaptive.
 */
export interface RequestQueueControllerSettings {
  /** `watermark_per_backend`: wanted stock of each backend, ≥ 1; in static mode 2 if null. */
  readonly watermarkPerBackend: number | null;
  /** `percentage_deviation_for_bounds`: distance of both bounds, between 0 and 1; 0.1 if null. */
  readonly percentageDeviationForBounds: number | null;
  /** `lower_bound_per_backend`: 0 … watermark; null derives it from the deviation. */
  readonly lowerBoundPerBackend: number | null;
  /** `upper_bound_per_backend`: ≥ watermark; null derives it from the deviation. */
  readonly upperBoundPerBackend: number | null;
  /** `max_cost_per_backend`: cost in flight on each backend; null for no limit. */
  readonly maxCostPerBackend: number | null;
  /** `max_in_flight_per_flow`: requests of one flow in flight on each backend; null for no limit. */
  readonly maxInFlightPerFlow: number | null;
  /** `hysteresis`: `seed` drains below the lower bound; `schmitt` from there on up to the upper bound. */
  readonly hysteresis: 'seed' | 'schmitt';
  /** `expiry_cleanup_interval`: time between sweeps for requests marked as cancelled, ms, > 0. */
  readonly expiryCleanupIntervalMs: number;
  /** `reclaim`: whether sheddable requests in flight are aborted for higher bands. */
  readonly reclaim: boolean;
}

/** `gateway.bands`: who goes first. */
export interface BandSettings {
  /** `between`: how bands compete. */
  readonly between: 'strict' | 'weighted' | 'strict_floor';
  /** `ceilings`: the part of the bound up to which a band is dispatched, > 0 … 1; they never rise. */
  readonly ceilings: PerBand<number>;
  /** `floor`: with `strict_floor`, the part of the cost that each lower band gets at least, 0 … 1. */
  readonly floor: number;
  /** `weights`: of the bands, with `weighted`, > 0. */
  readonly weights: PerBand<number>;
  /** `promote_after`: when a waiting standard request becomes critical, ms; null for never. */
  readonly promoteAfterMs: number | null;
  /** `promoted_share`: the part of the cost that urgent lines get out of turn at most, 0 … 1. */
  readonly promotedShare: number;
}

/** Everything that can be set for the queue of one pool. */
export interface PoolSettings {
  readonly fairRequestQueue: FairRequestQueueSettings;
  readonly requestQueueController: RequestQueueControllerSettings;
  readonly bands: BandSettings;
}

/** The defaults (docs/design/flow-control.md#parameters). */
export const POOL_DEFAULTS: PoolSettings = {
  fairRequestQueue: {
    totalCapacity: 1_000,
    flowCapacity: 100,
    sheddableCapacity: 900,
    queueBytes: 256 * 2 ** 20,
    sheddableBytes: 128 * 2 ** 20,
    queueTtlMs: 30_000,
    batchQueueTtlMs: 60_000,
    noBackendTtlMs: 30_000,
    scheduler: 'start',
    enqueue: 'all',
  },
  requestQueueController: {
    watermarkPerBackend: null,
    percentageDeviationForBounds: null,
    lowerBoundPerBackend: null,
    upperBoundPerBackend: null,
    maxCostPerBackend: null,
    maxInFlightPerFlow: null,
    hysteresis: 'seed',
    expiryCleanupIntervalMs: 1_000,
    reclaim: false,
  },
  bands: {
    between: 'strict_floor',
    ceilings: [1, 1, 0.9],
    floor: 0.05,
    weights: [70, 20, 10],
    promoteAfterMs: null,
    promotedShare: 0.2,
  },
};
