import type { Registry } from './metrics';
import { createFlowSeries, type FlowSeriesLimits } from './series/flow-series';
import { createHttpSeries } from './series/http-series';
import { createPoolSeries } from './series/pool-series';
import { createProcessSeries } from './series/process-series';

/** The gateway's metrics: requests, the queue, pools and their backends. */
export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

/**
 * Registers the gateway's metrics. Dashboards depend on their names; docs/metrics.md explains each
 * (docs/design/configuration.md#metric-names).
 */
export function createGatewayMetrics(registry: Registry, limits: FlowSeriesLimits = {}) {
  const registers = [registry];
  return {
    ...createHttpSeries(registers),
    ...createFlowSeries(registers, limits),
    ...createPoolSeries(registers),
    ...createProcessSeries(registers),
  } as const;
}
