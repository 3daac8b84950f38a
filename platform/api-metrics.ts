import { OPEN_STATUSES } from '../core/batch/status';
import type { Registry } from './metrics';
import { createHttpSeries } from './series/http-series';
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
    ...createHttpSeries(registers),
    openBatches: createOpenBatchSeries(registers, OPEN_STATUSES),
    ...createProcessSeries(registers),
  } as const;
}
