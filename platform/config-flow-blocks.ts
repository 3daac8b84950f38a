import { z } from 'zod';
import { LOAD_BOUND } from '../core/dispatch/backends/backend-choice';
import { POOL_DEFAULTS } from '../core/dispatch/pool/pool-settings';
import { count, durationText, numberIn, ratio, weight } from './config-values';

const positive = numberIn(Number.MIN_VALUE, Number.MAX_VALUE, 'a number above 0');
const atLeastOne = numberIn(1, Number.MAX_VALUE, 'a number of at least 1');
const perBand = <T extends z.ZodType>(value: T) => z.tuple([value, value, value]);

const { fairRequestQueue: QUEUE, requestQueueController: CONTROLLER, bands: BANDS } = POOL_DEFAULTS;

const fairRequestQueue = z.strictObject({
  total_capacity: count.default(QUEUE.totalCapacity),
  flow_capacity: count.default(QUEUE.flowCapacity),
  sheddable_capacity: z.union([z.literal('auto'), count]).prefault('auto'),
  queue_ttl: durationText.default(QUEUE.queueTtlMs),
  batch_queue_ttl: durationText.default(QUEUE.batchQueueTtlMs),
  no_backend_ttl: durationText.default(QUEUE.noBackendTtlMs),
  scheduler: z.enum(['start', 'finish']).default(QUEUE.scheduler),
  enqueue: z.enum(['all', 'critical']).default(QUEUE.enqueue),
  unit_cost: z.boolean().default(false),
});

const requestQueueController = z.strictObject({
  watermark_per_backend: atLeastOne.optional(),
  percentage_deviation_for_bounds: ratio.optional(),
  lower_bound_per_backend: numberIn(0, Number.MAX_VALUE, 'a number of at least 0').optional(),
  upper_bound_per_backend: atLeastOne.optional(),
  max_cost_per_backend: positive.optional(),
  max_in_flight_per_flow: count.optional(),
  hysteresis: z.enum(['seed', 'schmitt']).default(CONTROLLER.hysteresis),
  expiry_cleanup_interval: durationText.default(CONTROLLER.expiryCleanupIntervalMs),
  reclaim: z.boolean().default(CONTROLLER.reclaim),
});

const adaptive = z.strictObject({
  initial: count.prefault(8),
  min: count.prefault(1),
  max: count.prefault(256),
});

const bands = z.strictObject({
  between: z.enum(['strict', 'weighted', 'strict_floor']).default(BANDS.between),
  ceilings: perBand(ratio).default([...BANDS.ceilings]),
  floor: ratio.default(BANDS.floor),
  weights: perBand(weight).default([...BANDS.weights]),
  promote_after: durationText.optional(),
  promoted_share: ratio.default(BANDS.promotedShare),
});

const affinity = z.strictObject({
  cache_tokens: count.prefault(131_072),
  load_bound: atLeastOne.prefault(LOAD_BOUND),
});

/** Blocks of settings that hold for all pools, unless a pool sets some of their keys itself. */
export const flowBlocks = {
  fair_request_queue: fairRequestQueue.prefault({}),
  request_queue_controller: requestQueueController.prefault({}),
  adaptive: adaptive.prefault({}),
  bands: bands.prefault({}),
  affinity: affinity.prefault({}),
};

/** Values of {@link flowBlocks}. */
export type FlowBlocks = {
  readonly [B in keyof typeof flowBlocks]: z.output<(typeof flowBlocks)[B]>;
};

/** The keys of a block that a pool sets. `null` takes back a key that has no default. */
type Own<B> = { readonly [K in keyof B]?: B[K] | (undefined extends B[K] ? null : never) };
/** The blocks of a pool. */
export type OwnFlowBlocks = { readonly [B in keyof FlowBlocks]?: Own<FlowBlocks[B]> | undefined };

/** The same blocks in a pool. Their keys have no defaults, so what is not set there comes from `gateway`. */
export const ownFlowBlocks = {
  fair_request_queue: own(fairRequestQueue),
  request_queue_controller: own(requestQueueController),
  adaptive: own(adaptive),
  bands: own(bands),
  affinity: own(affinity),
};

function own<S extends z.ZodRawShape>(block: z.ZodObject<S>) {
  const shape = Object.entries(block.shape).map(([key, value]) => [key, withoutDefault(value)]);
  const keys = Object.fromEntries(shape) as z.ZodRawShape;
  return z.strictObject(keys).optional() as z.ZodType<Own<z.output<z.ZodObject<S>>> | undefined>;
}

function withoutDefault(value: z.core.$ZodType): z.ZodType {
  if (value instanceof z.ZodOptional) return (value.unwrap() as z.ZodType).nullish();
  const hasDefault = value instanceof z.ZodPrefault || value instanceof z.ZodDefault;
  return (hasDefault ? (value.unwrap() as z.ZodType) : (value as z.ZodType)).optional();
}

/** The settings of one pool: its own keys over those of the gateway (docs/configuration.md#gateway). */
export function flowBlocksOf(gateway: FlowBlocks, pool: OwnFlowBlocks): FlowBlocks {
  return {
    fair_request_queue: over(gateway.fair_request_queue, pool.fair_request_queue),
    request_queue_controller: over(gateway.request_queue_controller, pool.request_queue_controller),
    adaptive: over(gateway.adaptive, pool.adaptive),
    bands: over(gateway.bands, pool.bands),
    affinity: over(gateway.affinity, pool.affinity),
  };
}

function over<B extends object>(all: B, given: Own<B> | undefined): B {
  const set = Object.entries(given ?? {}).filter(([, value]) => value !== undefined);
  return { ...all, ...Object.fromEntries(set.map(([key, value]) => [key, value ?? undefined])) };
}

/** Whether the bounds of the stock are set, and not learnt. */
export function hasFixedBounds({
  request_queue_controller: controller,
}: Pick<FlowBlocks, 'request_queue_controller'>): boolean {
  return [
    controller.watermark_per_backend,
    controller.percentage_deviation_for_bounds,
    controller.lower_bound_per_backend,
    controller.upper_bound_per_backend,
  ].some((value) => value !== undefined);
}
