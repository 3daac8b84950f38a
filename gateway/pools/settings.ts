import { callTimeoutMs, longestDurationSec } from '../../core/audio/call-deadline';
import { WATERMARK } from '../../core/dispatch/pool/gate';
import type { PoolSettings } from '../../core/dispatch/pool/pool-settings';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import { flowBlocksOf, hasFixedBounds, type FlowBlocks } from '../../platform/config-flow-blocks';
import type { AudioConfig } from '../../platform/config-audio';
import type { BandName, FlowConfig } from '../../platform/config-gateway';

/** Without long waits, as in the API. */
const LEAST_IDLE_MS = 120_000;
/** For a request that ends in its last moment. */
const IDLE_MARGIN_MS = 10_000;

/**
 * How long a connection may be without traffic. A request may wait for its time to live and then be answered for
 * `request_timeout`, all without a byte. Those limits end it with an answer; the connection must not be cut before.
 */
export function idleConnectionMs(gateway: FlowConfig): number {
  const longestMs = Object.values(gateway.pools).map((pool) => {
    const { fair_request_queue: queue } = flowBlocksOf(gateway, pool);
    return Math.max(queue.queue_ttl, queue.batch_queue_ttl) + pool.request_timeout;
  });
  const { audio } = gateway;
  if (audio !== undefined) longestMs.push(longestAudioMs(audio));
  return Math.max(LEAST_IDLE_MS, ...longestMs.map((ms) => ms + IDLE_MARGIN_MS));
}

/** The longest wait of an audio request, and its longest call with one repetition. */
function longestAudioMs(audio: AudioConfig): number {
  const { queue_ttl: ttlMs, batch_queue_ttl: batchTtlMs } = audio.fair_request_queue;
  const { min_timeout: minTimeoutMs, timeout_factor: timeoutFactor } = audio.scheduler;
  const longest = longestDurationSec({ bytes: audio.max_file_bytes, durationSec: null });
  const callMs = Math.max(
    callTimeoutMs(longest, { minTimeoutMs, timeoutFactor }),
    audio.tts.timeout,
  );
  return 2 * (Math.max(ttlMs, batchTtlMs) + callMs);
}

/** The part of `total_capacity` that `sheddable_capacity: auto` is. */
const AUTO_SHEDDABLE = 0.9;

/**
 * What the controller of a pool is given (docs/design/flow-control.md#parameters). With several gateways, each one
 * gets its part (docs/design/gateway.md#several-gateways).
 */
export function poolSettings(gateway: FlowConfig, blocks: FlowBlocks): PoolSettings {
  const { bands } = blocks;
  return {
    fairRequestQueue: queueSettings(gateway, blocks),
    requestQueueController: controllerSettings(gateway, blocks),
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

function queueSettings(gateway: FlowConfig, { fair_request_queue: queue }: FlowBlocks) {
  const part = (capacity: number) => Math.floor(capacity / gateway.replicas);
  const total = part(queue.total_capacity);
  const batches = queue.sheddable_capacity;
  return {
    totalCapacity: total,
    flowCapacity: part(queue.flow_capacity),
    sheddableCapacity: batches === 'auto' ? Math.ceil(AUTO_SHEDDABLE * total) : part(batches),
    queueBytes: gateway.queue_bytes,
    sheddableBytes: gateway.sheddable_bytes,
    queueTtlMs: queue.queue_ttl,
    batchQueueTtlMs: queue.batch_queue_ttl,
    noBackendTtlMs: queue.no_backend_ttl,
    scheduler: queue.scheduler,
    enqueue: queue.enqueue,
  };
}

function controllerSettings({ replicas }: FlowConfig, blocks: FlowBlocks) {
  const { request_queue_controller: controller } = blocks;
  const part = (value: number | undefined) => (value === undefined ? null : value / replicas);
  const { watermark_per_backend: watermark = hasFixedBounds(blocks) ? WATERMARK : undefined } =
    controller;
  const perFlow = part(controller.max_in_flight_per_flow);
  return {
    // Not rounded, as the bounds are not: an idle backend gets a request whatever they are.
    watermarkPerBackend: part(watermark),
    percentageDeviationForBounds: controller.percentage_deviation_for_bounds ?? null,
    lowerBoundPerBackend: part(controller.lower_bound_per_backend),
    upperBoundPerBackend: part(controller.upper_bound_per_backend),
    maxCostPerBackend: part(controller.max_cost_per_backend),
    maxInFlightPerFlow: perFlow === null ? null : Math.floor(perFlow),
    hysteresis: controller.hysteresis,
    expiryCleanupIntervalMs: controller.expiry_cleanup_interval,
    reclaim: controller.reclaim,
  };
}

/** Bands by their names in settings and metrics. */
export const BAND_BY_NAME: Readonly<Record<BandName, Band>> = BAND;
