import type { Registry } from 'prom-client';
import { createJobSeries } from './series/job-series';
import { createMaintenanceSeries } from './series/maintenance-series';
import { createModelSeries, type SeriesLimits } from './series/model-series';
import { createProcessSeries } from './series/process-series';
import { createProviderSeries } from './series/provider-series';
import { createTenantSeries } from './series/tenant-series';
import { createWorkerSeries } from './series/worker-series';

export type { SeriesLimits } from './series/model-series';

/** A worker's metrics: batches, slots, requests per model, tokens, object store, maintenance. */
export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/**
 * Registers the worker's metrics. Dashboards depend on their names; docs/metrics.md explains each
 * (docs/design/configuration.md#metric-names).
 */
export function createWorkerMetrics(registry: Registry, limits: SeriesLimits = {}) {
  const registers = [registry];
  return {
    ...createJobSeries(registers),
    ...createWorkerSeries(registers),
    ...createModelSeries(registers, limits),
    ...createMaintenanceSeries(registers),
    ...createProcessSeries(registers),
    ...createProviderSeries(registers),
    countTenantTokens: createTenantSeries(registers, limits),
  } as const;
}
