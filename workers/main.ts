import { readFile } from 'node:fs/promises';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { connectionOptions } from '../client/connection';
import { GatewayError } from '../core/errors';
import { createMemoryBudget } from '../inference/memory-budget';
import { createPermitDispatcher } from '../inference/permit-dispatcher';
import { createRegistry } from '../inference/registry';
import type { Config } from '../platform/config';
import type { Logger } from '../platform/logger';
import { createLogger } from '../platform/logger';
import { createMetricsRegistry } from '../platform/metrics';
import { startObservabilityServer } from '../platform/observability-server';
import type { RunningProcess } from '../platform/process';
import { startTracing } from '../platform/tracing';
import { createWorkerMetrics } from '../platform/worker-metrics';
import { createFilesystemJournal } from '../storage/journal/filesystem-journal';
import { openFilesystemStore } from '../storage/objects/filesystem';
import { readOrCreateStoreId } from '../storage/objects/store-id';
import { createBatchRecords } from '../storage/postgres/batch-records';
import { openPool } from '../storage/postgres/pool';
import { createProgressReporter } from '../storage/postgres/progress';
import { verifyStoreIdentity } from '../storage/postgres/store-identity';
import { execQueue } from '../workflows/contract';
import { bundlePath } from './bundle-workflows';
import { createWorkers } from './create-workers';
import { hostWorkers } from './host-workers';
import { createRequestObserver } from './request-observer';
import { createActivities, workerIdentity } from './wiring';

const TEMPORAL_WAIT_MS = 60_000;

/**
 * Runs a worker: everything it needs is opened here, by hand, and released in reverse.
 * @throws temporal_unavailable, postgres_unavailable, store_mismatch, config_invalid, port_in_use
 */
export async function runWorker(config: Config): Promise<RunningProcess> {
  const logger = createLogger(config.log, 'worker');
  bridgeTemporalLogs(logger);
  const identity = workerIdentity();
  const tracing = startTracing('nightshift-worker', config.tracing.otlp_endpoint);
  const pool = openPool(config.postgres.url, { statementTimeoutMs: 10_000 });
  const progressPool = openPool(config.postgres.url, { statementTimeoutMs: 2_000, max: 4 });
  const { store, root } = await openStore(config);
  await verifyStoreIdentity(pool, await readOrCreateStoreId(root));
  const journal = createFilesystemJournal({ path: root, store, logger });
  const registry = createRegistry(config);
  const drain = new AbortController();
  const metricsRegistry = createMetricsRegistry('worker');
  const metrics = createWorkerMetrics(metricsRegistry);
  metrics.totalWorkers.set(config.worker.exec_slots);
  metrics.maxInflightConcurrency.set(config.concurrency.global);
  const progress = createProgressReporter({ pool: progressPool, worker: identity, logger });
  const dispatcher = createPermitDispatcher({
    global: config.concurrency.global,
    perModel: config.concurrency.per_model,
    onGuardTripped: (error) => {
      logger.fatal({ err: error, reason: 'guard_shutdown' }, 'a permit was released twice');
      observability.markNotReady('guard_shutdown');
      drain.abort();
    },
  });
  const activities = createActivities({
    config,
    store,
    journal,
    registry,
    dispatcher,
    memory: createMemoryBudget(config.concurrency.in_flight_bytes),
    progress,
    records: createBatchRecords(pool, {
      outputFilesSec: Math.round(config.retention.output_files / 1000),
    }),
    observer: createRequestObserver(metrics),
    logger,
    worker: identity,
    drain: drain.signal,
  });
  const connection = await connectTemporal(config, logger);
  const workers = await createWorkers({
    connection,
    namespace: config.temporal.namespace,
    config,
    activities,
    execQueues: registry.gateways.map((gateway) => execQueue(gateway.key)),
    workflowBundle: { code: await readFile(bundlePath(), 'utf8') },
    plugins: [
      new OpenTelemetryPlugin({
        resource: tracing.resource,
        spanProcessor: tracing.spanProcessor,
      }),
    ],
    drainBudgetMs: drainBudgetMs(config),
    identity,
  });
  const observability = await startObservabilityServer({
    host: config.api.host,
    port: config.worker.observability_port,
    portSetting: 'worker.observability_port',
    registry: metricsRegistry,
    checks: {
      postgres: async () => void (await pool.query('select 1')),
      object_store: () => store.check(),
    },
  });
  return hostWorkers({
    workers,
    observability,
    drain,
    logger,
    drainBudgetMs: drainBudgetMs(config),
    release: [
      { name: 'progress', run: () => progress.close() },
      { name: 'journal', run: () => journal.close() },
      { name: 'connections to gateways', run: () => registry.close() },
      { name: 'temporal', run: () => connection.close() },
      { name: 'tracing', run: () => tracing.close() },
      { name: 'object store', run: () => store.close() },
      {
        name: 'postgres',
        run: async () => void (await Promise.all([pool.end(), progressPool.end()])),
      },
    ],
  });
}

async function openStore(config: Config) {
  if (config.object_store.type !== 'filesystem') {
    throw new GatewayError(
      'config_invalid',
      'object_store.type s3 is not available in this version: use filesystem',
    );
  }
  const root = config.object_store.path;
  return { store: await openFilesystemStore({ path: root }), root };
}

/** Temporal may come up after us: a minute of patience, then a clear word. */
async function connectTemporal(config: Config, logger: Logger): Promise<NativeConnection> {
  const untilMs = Date.now() + TEMPORAL_WAIT_MS;
  for (;;) {
    try {
      const { address, apiKey, tls } = connectionOptions(config.temporal);
      return await NativeConnection.connect({
        ...(address === undefined ? {} : { address }),
        ...(typeof apiKey === 'string' ? { apiKey } : {}),
        ...(tls === undefined || tls === null ? {} : { tls }),
      });
    } catch (cause) {
      if (Date.now() >= untilMs) {
        throw new GatewayError(
          'temporal_unavailable',
          `No Temporal server answers at ${config.temporal.address}. Start one, or set temporal.address (TEMPORAL_ADDRESS).`,
          { cause },
        );
      }
      logger.warn({ address: config.temporal.address }, 'temporal does not answer yet');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

/** `auto`: the longest answer that may be in flight, and time to write it down. */
function drainBudgetMs(config: Config): number {
  if (config.worker.drain_budget !== 'auto') return config.worker.drain_budget;
  const gateways = [config.global_inference_gateway, ...Object.values(config.model_gateways ?? {})];
  const longest = Math.max(0, ...gateways.map((gateway) => gateway?.request_timeout ?? 0));
  return longest + 15_000;
}

/** The SDK's own log lines go through our logger; installed once per process. */
function bridgeTemporalLogs(logger: Logger): void {
  const levels = {
    TRACE: 'trace',
    DEBUG: 'debug',
    INFO: 'info',
    WARN: 'warn',
    ERROR: 'error',
  } as const;
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => {
      logger[levels[level]]({ ...meta }, message);
    }),
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: 'WARN' } },
  });
}
