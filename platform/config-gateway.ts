import { z } from 'zod';
import { POOL_DEFAULTS } from '../core/dispatch/pool/pool-settings';
import { audioSection } from './config-audio';
import { flowBlocks, ownFlowBlocks } from './config-flow-blocks';
import {
  count,
  duration,
  headerBytes,
  hostName,
  listenHost,
  nonEmpty,
  port,
  serverKeys,
  size,
  sizeText,
} from './config-values';

const band = z.enum(['critical', 'standard', 'sheddable']);

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
  ...ownFlowBlocks,
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
    replicas: count.prefault(1),
    max_header_bytes: headerBytes.prefault('16KiB'),
    header_timeout: duration('10s'),
    min_body_rate: size('4KiB'),
    body_grace: duration('30s'),
    max_connections: count.prefault(16_384),
    /** Without it, only the number of all connections is limited: a worker opens one per request. */
    max_connections_per_address: count.optional(),
    max_body_bytes: size('32MiB'),
    queue_bytes: sizeText.default(POOL_DEFAULTS.fairRequestQueue.queueBytes),
    sheddable_bytes: sizeText.default(POOL_DEFAULTS.fairRequestQueue.sheddableBytes),
    status_policy: z.enum(['seed', 'contended']).default('seed'),
    worker_token_file: nonEmpty.optional(),
    default_band: band.default('standard'),
    objectives: z.record(nonEmpty, band).default({ realtime: 'critical', batch: 'sheddable' }),
    tenants: z.record(nonEmpty, z.strictObject({ max_band: band })).default({}),
    pools: z.record(nonEmpty, pool).default({}),
    audio: audioSection.optional(),
    ...flowBlocks,
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
