import { redactUrl } from '../platform/config-redact';
import type { PoolSample } from '../platform/series/pool-series';
import type { GatewayPool } from './pools/gateway-pool';
import type { BodyRoom } from './requests/body-room';

/** What `GET /admin/flow` shows of the gateway and all pools (docs/gateway.md#admin-flow). */
export function flowView(pools: readonly GatewayPool[], bodyRoom: Pick<BodyRoom, 'bytes'>) {
  return { receiving_bytes: bodyRoom.bytes, pools: pools.map(poolView) };
}

/** What the metrics show of a pool. */
export function poolSample(pool: GatewayPool, nowMs: number): PoolSample {
  const stats = pool.controller.stats();
  const [critical, standard, sheddable] = stats.queued;
  return {
    ...stats,
    pool: pool.name,
    queued: { critical, standard, sheddable },
    sheddableCap: pool.sheddableCap,
    slowdown: pool.guard.slowdown(nowMs),
    backends: pool.backends.map((backend) => ({
      backend: redactUrl(backend.id),
      isReady: backend.isReady,
      limit: backend.limit.limit,
      inFlight: backend.inFlight,
    })),
  };
}

function poolView(pool: GatewayPool) {
  const stats = pool.controller.stats();
  const [critical, standard, sheddable] = stats.queued;
  return {
    name: pool.name,
    models: pool.models,
    stock: { requests: stats.stock, cost: Math.round(stats.stockCost) },
    bounds: { lower: stats.lower, watermark: stats.watermark, upper: stats.upper },
    saturation: stats.saturation,
    queued: { critical, standard, sheddable },
    queued_cost: Math.round(stats.queuedCost),
    queued_bytes: stats.queuedBytes,
    active_flows: stats.activeFlows,
    sheddable_cap: Number.isFinite(pool.sheddableCap) ? Math.floor(pool.sheddableCap) : null,
    backends: pool.backends.map((backend) => ({
      url: redactUrl(backend.id),
      ready: backend.isReady,
      reason: backend.fault,
      limit: Math.floor(backend.limit.limit),
      in_flight: backend.inFlight,
      cost: Math.round(backend.cost),
    })),
  };
}
