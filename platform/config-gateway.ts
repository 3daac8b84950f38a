import { z } from 'zod';
import { LOAD_BOUND } from '../core/dispatch/backends/backend-choice';
import {
  count,
  duration,
  durationText,
  headerBytes,
  hostName,
  listenHost,
  nonEmpty,
  numberIn,
  port,
  ratio,
  serverKeys,
  size,
  weight,
} from './config-values';

const band = z.enum(['critical', 'standard', 'sheddable']);
const positive = numberIn(Number.MIN_VALUE, Number.MAX_VALUE, 'a number above 0');
const atLeastOne = numberIn(1, Number.MAX_VALUE, 'a number of at least 1');
const perBand = <T extends z.ZodType>(value: T) => z.tuple([value, value, value]);

/** One pool of model servers that serve the same models. */
const pool = z.strictObject({
  models: z.array(nonEmpty).min(1, 'name at least one model, or *'),
  backends: z.array(z.strictObject(serverKeys)).min(1, 'name at least one backend'),
  request_timeout: duration('5m'),
  stall_timeout: duration('60s'),
  probe: z
    .strictObject({
      path: z.string().startsWith('/').default('/health'),
      interval: duration('2s'),
      timeout: duration('1s'),
      fall: count.prefault(2),
      metrics: z.boolean().default(false),
    })
    .prefault({}),
});

const fairRequestQueue = z.strictObject({
  total_capacity: count.prefault(1_000),
  flow_capacity: count.prefault(100),
  sheddable_capacity: z.union([z.literal('auto'), count]).prefault('auto'),
  queue_ttl: duration('30s'),
  batch_queue_ttl: duration('60s'),
  no_backend_ttl: duration('30s'),
  scheduler: z.enum(['start', 'finish']).default('start'),
  enqueue: z.enum(['all', 'critical']).default('all'),
  unit_cost: z.boolean().default(false),
});

const requestQueueController = z.strictObject({
  watermark_per_backend: atLeastOne.optional(),
  percentage_deviation_for_bounds: ratio.optional(),
  lower_bound_per_backend: numberIn(0, Number.MAX_VALUE, 'a number of at least 0').optional(),
  upper_bound_per_backend: atLeastOne.optional(),
  max_cost_per_backend: positive.optional(),
  max_in_flight_per_flow: count.optional(),
  hysteresis: z.enum(['seed', 'schmitt']).default('seed'),
  expiry_cleanup_interval: duration('1s'),
  reclaim: z.boolean().default(false),
});

const bands = z.strictObject({
  between: z.enum(['strict', 'weighted', 'strict_floor']).default('strict_floor'),
  ceilings: perBand(ratio).prefault([1, 1, 0.9]),
  floor: ratio.prefault(0.05),
  weights: perBand(weight).prefault([70, 20, 10]),
  promote_after: durationText.optional(),
  promoted_share: ratio.prefault(0.2),
});

/**
 * The settings of `nightshift gateway`. Rules between them are in `config-gateway-rules.ts`; the ranges are those of
 * core/dispatch (docs/design/flow-control.md).
 */
export const gatewaySection = z
  .strictObject({
    host: listenHost.default('127.0.0.1'),
    port: port.prefault(8002),
    observability_host: listenHost.default('127.0.0.1'),
    observability_port: port.prefault(9091),
    allowed_hosts: z.array(hostName).optional(),
    drain_budget: duration('30s'),
    max_header_bytes: headerBytes.prefault('16KiB'),
    header_timeout: duration('10s'),
    min_body_rate: size('4KiB'),
    body_grace: duration('30s'),
    max_connections: count.prefault(16_384),
    /** Without it, only the number of all connections is limited: a worker opens one per request. */
    max_connections_per_address: count.optional(),
    max_body_bytes: size('32MiB'),
    queue_bytes: size('256MiB'),
    sheddable_bytes: size('128MiB'),
    status_policy: z.enum(['seed', 'contended']).default('seed'),
    worker_token_file: nonEmpty.optional(),
    default_band: band.default('standard'),
    objectives: z.record(nonEmpty, band).default({ realtime: 'critical', batch: 'sheddable' }),
    tenants: z.record(nonEmpty, z.strictObject({ max_band: band })).default({}),
    pools: z.record(nonEmpty, pool).default({}),
    fair_request_queue: fairRequestQueue.prefault({}),
    request_queue_controller: requestQueueController.prefault({}),
    adaptive: z
      .strictObject({
        initial: count.prefault(8),
        min: count.prefault(1),
        max: count.prefault(256),
      })
      .prefault({}),
    bands: bands.prefault({}),
    affinity: z
      .strictObject({
        cache_tokens: count.prefault(131_072),
        load_bound: atLeastOne.prefault(LOAD_BOUND),
      })
      .prefault({}),
  })
  .prefault({});

/** The settings of the gateway. */
export type FlowConfig = z.output<typeof gatewaySection>;
/** The settings of one pool. */
export type PoolConfig = FlowConfig['pools'][string];
/** The settings of one model server of a pool. */
export type BackendConfig = PoolConfig['backends'][number];
/** The name of a band, as settings have it. */
export type BandName = z.output<typeof band>;
