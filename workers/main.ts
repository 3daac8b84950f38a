import { readFile } from 'node:fs/promises';
import { createLastChunk } from '../activities/finalize/last-chunk';
import { createRunSmallBatch } from '../activities/small/run-small-batch';
import { countReloads } from '../client/count-reloads';
import { loadDataConverter } from '../client/data-converter';
import type { NightshiftError } from '../core/errors';
import type { PermitSource } from '../inference/loans/permit-source';
import type { Config } from '../platform/config';
import { watchDependencies } from '../platform/dependency-watch';
import { watchEventLoopDelay } from '../platform/event-loop-delay';
import { boundHeapGrowth } from '../platform/heap';
import { createLogger, type Logger } from '../platform/logger';
import { createMetricsRegistry } from '../platform/metrics';
import { observabilityPlace } from '../platform/observability-place';
import {
  startObservabilityServer,
  type ObservabilityServer,
} from '../platform/observability-server';
import type { RunningProcess, StartOptions } from '../platform/process';
import { phaseRecord, runPhases } from '../platform/shutdown';
import { StartWait } from '../platform/start-wait';
import { openTracing } from '../platform/tracing/open-tracing';
import {
  createWorkerMetrics,
  type SeriesLimits,
  type WorkerMetrics,
} from '../platform/worker-metrics';
import { bundlePath } from './bundle-workflows';
import { createWorkers } from './create-workers';
import { drainBudgetOf } from './drain-budget';
import { hostWorkers } from './host-workers';
import { beginAtZero } from './begin-at-zero';
import { startJobJanitor } from './job-janitor';
import { searchOrphans } from './orphan-search';
import { measureJobs } from './job-metrics';
import { findHeld } from './left-behind';
import { startMaintenance, type Maintenance, type MaintenanceOptions } from './maintenance';
import { measureOpenJobs } from './measure-open-jobs';
import { openResources, type WorkerResources } from './open-resources';
import { openStores } from './open-stores';
import { queuesOf } from './route-directory';
import { openWorkerConnection, type WorkerConnection } from './temporal-connection';
import { installTemporalRuntime } from './temporal-runtime';
import { temporalTracing } from './temporal-tracing';
import { traceActivities } from './trace-activities';
import { createActivities, type WorkerActivities } from './wiring';
import { delegateQueue } from '../workflows/contract';
import { patchOptions } from './workflow-versions';

/** How a worker starts. */
export interface WorkerOptions extends StartOptions {
  /** Where its permits come from; by default, it shares them with no other process. */
  readonly permits?: PermitSource;
  /** Called with what the start waits for. */
  readonly onStarting?: (reason: string) => void;
}

/**
 * Runs a worker process until it is closed. Waits for what is away (docs/design/processes.md#start).
 * @throws temporal_unavailable, postgres_unavailable, schema_outdated, schema_newer, store_mismatch,
 *   object_store_failed, config_invalid, port_in_use
 */
export async function runWorker(
  config: Config,
  { permits, onStarting, ...options }: WorkerOptions = {},
): Promise<RunningProcess> {
  boundHeapGrowth();
  const logger = createLogger(config.log, 'worker');
  const temporalRuntime = await installTemporalRuntime(logger);
  const registry = createMetricsRegistry('worker');
  const metrics = createWorkerMetrics(registry, seriesLimits(config));
  beginAtZero(metrics);
  const observability = await startObservabilityServer({
    ...observabilityPlace(config, 'worker'),
    logger,
    registry,
    foreignMetrics: () => temporalRuntime.scrape(),
  });
  const markStarting = (reason: string): void => {
    observability.markStarting(reason);
    onStarting?.(reason);
  };
  const { dependencyUp: up } = metrics;
  const wait = new StartWait({ ...options, logger, up, observability: { markStarting } });
  const opened: ReleaseStep[] = [];
  try {
    return await startWorkers(config, { logger, metrics, observability, wait, opened, permits });
  } catch (error) {
    const release = opened.map((step) => ({ ...step, timeoutMs: RELEASE_MS }));
    await runPhases(release, (phase) => logger.info(phaseRecord(phase), 'shutdown phase'));
    await observability.close();
    throw error;
  }
}

/** How long one step may take when a start has failed. */
const RELEASE_MS = 5_000;

interface ReleaseStep {
  readonly name: string;
  run(): Promise<void>;
}

interface Host {
  readonly logger: Logger;
  readonly metrics: WorkerMetrics;
  readonly observability: ObservabilityServer;
  readonly wait: StartWait;
  /** What has been opened so far, in the order of release. */
  readonly opened: ReleaseStep[];
  readonly permits: PermitSource | undefined;
}

async function startWorkers(config: Config, host: Host): Promise<RunningProcess> {
  const { logger, metrics, observability, wait, opened } = host;
  const tracing = openTracing(config.tracing, { service: 'nightshift-worker', logger });
  opened.unshift({ name: 'tracing', run: async () => tracing?.close() });
  const stores = await openStores(config, { logger, metrics, tracing, wait });
  opened.unshift(...stores.release);
  const connection = await connectWorkers(config, host);
  opened.unshift({ name: 'temporal', run: () => connection.close() });
  const drain = new AbortController();
  // Replaced when the workers run. Until then no permit is in use, so nothing can trip the guard.
  const guard: { trip: (error: NightshiftError) => void } = { trip: () => drain.abort() };
  const resources = await openResources(config, {
    ...{ logger, metrics, tracing, stores, permits: host.permits },
    drain: drain.signal,
    onGuardTripped: (error) => guard.trip(error),
  });
  opened.unshift(...resources.release);
  const drainBudgetMs = drainBudgetOf(config);
  const workers = await createWorkers({
    connection: connection.first,
    dataConverter: loadDataConverter(config.temporal),
    namespace: config.temporal.namespace,
    config,
    activities: observedActivities(resources, metrics),
    execQueues: queuesOf(resources.registry),
    delegateQueues: Object.keys(config.providers).map(delegateQueue),
    ...(await readWorkflowCode(config)),
    plugins: [temporalTracing()],
    drainBudgetMs,
    identity: resources.worker,
  });
  connection.follow(workers);
  const endDelays = watchEventLoopDelay(metrics.eventLoopDelay);
  opened.unshift({ name: 'event loop delay', run: async () => endDelays() });
  const watch = watchDependencies({ checks: resources.checks, logger, up: metrics.dependencyUp });
  opened.unshift({ name: 'dependency watch', run: () => watch.close() });
  const maintenance = isBatchWorker(config) ? await maintain({ ...resources, metrics }) : null;
  opened.unshift({ name: 'maintenance', run: async () => maintenance?.close() });
  opened.unshift(...careForJobs(resources, metrics));
  const release = opened;
  const hosted = hostWorkers({ workers, observability, drain, logger, drainBudgetMs, release });
  guard.trip = (error) => hosted.distrust('guard_shutdown', error);
  observability.markStarted(resources.checks);
  return hosted;
}

/** The connection of the workers, whose reloads of credentials are counted. */
function connectWorkers(
  { temporal }: Config,
  { logger, metrics, wait }: Pick<Host, 'logger' | 'metrics' | 'wait'>,
): Promise<WorkerConnection> {
  const observer = countReloads(metrics.credentialReloads, temporal);
  return openWorkerConnection({ config: temporal, logger, wait, observer });
}

/** Looks for what a killed worker left, before the workers of this process take any of it. */
async function maintain(options: Omit<MaintenanceOptions, 'held'>): Promise<Maintenance> {
  return startMaintenance({ ...options, held: await findHeld(options) });
}

/** Looks after jobs at the providers that this process can call, beside the activities of their batches. */
function careForJobs(resources: WorkerResources, metrics: WorkerMetrics): ReleaseStep[] {
  const { delegation } = resources;
  if (delegation.providers.length === 0) return [];
  const options = { ...resources, ...delegation, metrics };
  const [janitor, measured] = [startJobJanitor(options), measureOpenJobs(options)];
  const orphans = searchOrphans(options);
  return [
    { name: 'job janitor', run: () => janitor.close() },
    { name: 'open jobs', run: () => measured.close() },
    { name: 'search for orphans', run: () => orphans.close() },
  ];
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

/** All activities. Steps are measured and traced, also within an activity that does several of them. */
function observedActivities(resources: WorkerResources, metrics: WorkerMetrics): WorkerActivities {
  const measured = measureJobs(createActivities(resources), { ...resources, metrics });
  const steps = traceActivities(measured, resources.traces);
  const { logger, drain, drafts } = resources;
  const parts = { steps, logger, drain };
  return {
    ...steps,
    executeChunk: createLastChunk({ ...parts, drafts }),
    runSmallBatch: createRunSmallBatch(parts),
  };
}

function seriesLimits({ metrics, model_gateways: gateways = {} }: Config): SeriesLimits {
  const { max_label_values: maxLabelValues, idle_series: idleMs } = metrics;
  return { maxLabelValues, idleMs, models: Object.keys(gateways) };
}
