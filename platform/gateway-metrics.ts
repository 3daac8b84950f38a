import { createAudioMetrics } from './audio-metrics';
import type { Registry } from './metrics';
import { createFlowSeries, type FlowSeriesLimits } from './series/flow-series';
import { createHttpSeries } from './series/http-series';
import { createPoolSeries } from './series/pool-series';
import { createProcessSeries } from './series/process-series';
import { readCounter } from './series/read-series';

/** The gateway's metrics: requests, the queue, pools and their backends. */
export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

/** Reasons for which a connection is refused at its arrival, and not ended later. */
const REFUSALS = ['max_connections', 'max_connections_per_address'];

/**
 * Registers the gateway's metrics. Dashboards depend on their names; docs/metrics.md explains each
 * (docs/design/configuration.md#metric-names).
 */
export function createGatewayMetrics(registry: Registry, limits: FlowSeriesLimits = {}) {
  const registers = [registry];
  const http = createHttpSeries(registers);
  return {
    ...http,
    connectionsClosed: countRefusals(registers, http.connectionsClosed),
    ...createFlowSeries(registers, limits),
    ...createPoolSeries(registers),
    ...createProcessSeries(registers),
    audio: createAudioMetrics(registry, limits),
  } as const;
}

function countRefusals(
  registers: Registry[],
  closed: ReturnType<typeof createHttpSeries>['connectionsClosed'],
) {
  let refused = 0;
  const name = 'gateway_connections_refused_total';
  const help = 'New connections that a limit refused';
  readCounter(registers, { name, help }, () => [[{}, refused]]);
  return {
    inc: (labels: { readonly reason: string }): void => {
      if (REFUSALS.includes(labels.reason)) refused++;
      closed.inc({ reason: labels.reason });
    },
  };
}
