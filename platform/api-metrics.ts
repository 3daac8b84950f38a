import { OPEN_STATUSES } from '../core/batch/status';
import { Counter, Gauge, Histogram, type Registry } from './metrics';
import { createOpenBatchSeries } from './series/open-batch-series';
import { createProcessSeries } from './series/process-series';

/** The API's metrics. `path` is the pattern of the route, never the requested path: labels stay few. */
export type ApiMetrics = ReturnType<typeof createApiMetrics>;

/**
 * Registers the API's metrics. Dashboards depend on their names; docs/metrics.md explains each
 * (docs/design/configuration.md#metric-names).
 */
export function createApiMetrics(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'http_requests_total',
      help: 'HTTP requests answered',
      labelNames: ['method', 'path', 'status'] as const,
      registers,
    }),
    requestDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request to the end of the response',
      labelNames: ['method', 'path', 'status'] as const,
      registers,
    }),
    requestsInFlight: new Gauge({
      name: 'http_requests_in_flight',
      help: 'HTTP requests being answered',
      labelNames: ['method', 'path'] as const,
      registers,
    }),
    connectionsClosed: new Counter({
      name: 'http_connections_closed_total',
      help: 'Connections that were refused or ended because of a limit or of invalid bytes',
      labelNames: ['reason'] as const,
      registers,
    }),
    openBatches: createOpenBatchSeries(registers, OPEN_STATUSES),
    ...createProcessSeries(registers),
  } as const;
}
