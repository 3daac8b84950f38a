import { readFile } from 'node:fs/promises';
import { countReloads } from '../client/count-reloads';
import { loadDataConverter } from '../client/data-converter';
import type { NightshiftError } from '../core/errors';
import type { Config } from '../platform/config';
import { watchDependencies } from '../platform/dependency-watch';
import { watchEventLoopDelay } from '../platform/event-loop-delay';
import { boundHeapGrowth } from '../platform/heap';
import { createLogger, type Logger } from '../platform/logger';
import { createMetricsRegistry } from '../platform/metrics';
import { observabilityPlace } from '../platform/observability-place';
import { startObservabilityServer } from '../platform/observability-server';
import type { RunningProcess } from '../platform/process';
import { openTracing } from '../platform/tracing/open-tracing';
import {
  createWorkerMetrics,
  type SeriesLimits,
  type WorkerMetrics,
} from '../platform/worker-metrics';
import { bundlePath } from './bundle-workflows';
import { createWorkers } from './create-workers';
import { hostWorkers } from './host-workers';
import { beginAtZero } from './begin-at-zero';
import { measureJobs } from './job-metrics';
import { findHeld } from './left-behind';
import { startMaintenance, type Maintenance, type MaintenanceOptions } from './maintenance';
import { openResources, type WorkerResources } from './open-resources';
import { queuesOf } from './route-directory';
import { openWorkerConnection, type WorkerConnection } from './temporal-connection';
import { installTemporalRuntime } from './temporal-runtime';
import { temporalTracing } from './temporal-tracing';
import { traceActivities } from './trace-activities';
import { createActivities, type WorkerActivities } from './wiring';
import { patchOptions } from './workflow-versions';

/**
 * Runs a worker process until it is closed.
 * @throws temporal_unavailable, postgres_unavailable, schema_outdated, schema_newer, store_mismatch,
 *   config_invalid, port_in_use
 */
export async function runWorker(config: Config): Promise<RunningProcess> {
  boundHeapGrowth();
  const logger = createLogger(config.log, 'worker');
  const temporalRuntime = await installTemporalRuntime(logger);
  const tracing = openTracing(config.tracing, { service: 'nightshift-worker', logger });
  const metricsRegistry = createMetricsRegistry('worker');
  const metrics = createWorkerMetrics(metricsRegistry, seriesLimits(config));
  beginAtZero(metrics);
  const drain = new AbortController();
  // Replaced when the workers run. Until then no permit is in use, so nothing can trip the guard.
  const guard: { trip: (error: NightshiftError) => void } = { trip: () => drain.abort() };
  const resources = await openResources(config, {
    logger,
    metrics,
    tracing,
    drain: drain.signal,
    onGuardTripped: (error) => guard.trip(error),
  });
  const connection = await connectWorkers(config, { logger, metrics });
  const budgetMs = drainBudgetMs(config);
  const workers = await createWorkers({
    connection: connection.first,
    dataConverter: loadDataConverter(config.temporal),
    namespace: config.temporal.namespace,
    config,
    activities: observedActivities(resources, metrics),
    execQueues: queuesOf(resources.registry),
    ...(await readWorkflowCode(config)),
    plugins: [temporalTracing()],
    drainBudgetMs: budgetMs,
    identity: resources.worker,
  });
  connection.follow(workers);
  const observability = await startObservabilityServer({
    ...observabilityPlace(config, 'worker'),
    logger,
    registry: metricsRegistry,
    foreignMetrics: () => temporalRuntime.scrape(),
    checks: resources.checks,
  });
  const endDelays = watchEventLoopDelay(metrics.eventLoopDelay);
  const watch = watchDependencies({ checks: resources.checks, logger, up: metrics.dependencyUp });
  const maintenance = isBatchWorker(config) ? await maintain({ ...resources, metrics }) : null;
  const hosted = hostWorkers({
    workers,
    observability,
    drain,
    logger,
    drainBudgetMs: budgetMs,
    release: [
      { name: 'maintenance', run: async () => maintenance?.close() },
      { name: 'dependency watch', run: () => watch.close() },
      { name: 'event loop delay', run: async () => endDelays() },
      { name: 'temporal', run: () => connection.close() },
      ...resources.release,
      { name: 'tracing', run: async () => tracing?.close() },
    ],
  });
  guard.trip = (error) => hosted.distrust('guard_shutdown', error);
  return hosted;
}

/** The connection of the workers, whose reloads of credentials are counted. */
function connectWorkers(
  { temporal }: Config,
  { logger, metrics }: { readonly logger: Logger; readonly metrics: WorkerMetrics },
): Promise<WorkerConnection> {
  const observer = countReloads(metrics.credentialReloads, temporal);
  return openWorkerConnection({ config: temporal, logger, observer });
}

/** Looks for what a killed worker left, before the workers of this process take any of it. */
async function maintain(options: Omit<MaintenanceOptions, 'held'>): Promise<Maintenance> {
  return startMaintenance({ ...options, held: await findHeld(options) });
}

/** Whether this process runs workflows, and so looks after schedules and open batches. */
function isBatchWorker({ worker }: Config): boolean {
  return worker.roles.includes('batch');
}

/** The workflows of this build, with the patches that the settings leave active. @throws config_invalid */
async function readWorkflowCode({ temporal }: Config) {
  const code = await readFile(bundlePath(), 'utf8');
  return { workflowBundle: { code }, patches: patchOptions(temporal, code) };
}

/** All activities, measured and traced. */
function observedActivities(resources: WorkerResources, metrics: WorkerMetrics): WorkerActivities {
  const measured = measureJobs(createActivities(resources), { ...resources, metrics });
  return traceActivities(measured, resources.traces);
}

/** `auto` is the longest request timeout plus 15 s to journal the last answers. In ms. */
function drainBudgetMs(config: Config): number {
  if (config.worker.drain_budget !== 'auto') return config.worker.drain_budget;
  const gateways = [config.global_inference_gateway, ...Object.values(config.model_gateways ?? {})];
  const longest = Math.max(0, ...gateways.map((gateway) => gateway?.request_timeout ?? 0));
  return longest + 15_000;
}

function seriesLimits({ metrics, model_gateways: gateways = {} }: Config): SeriesLimits {
  const { max_label_values: maxLabelValues, idle_series: idleMs } = metrics;
  return { maxLabelValues, idleMs, models: Object.keys(gateways) };
}
