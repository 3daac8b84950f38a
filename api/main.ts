import { createBatchWorkflows } from '../client/batch-workflows';
import { overdueAfterSec } from '../core/batch/overdue';
import { openClient } from '../client/connection';
import { countReloads } from '../client/count-reloads';
import { openTemporalPing } from '../client/temporal-ping';
import { NightshiftError } from '../core/errors';
import { createLineIndex } from '../core/openai/line-index';
import { listen } from '../http/listen';
import { createApiMetrics } from '../platform/api-metrics';
import { publicBindFault } from '../platform/config-rules';
import type { Config } from '../platform/config-schema';
import { watchEventLoopDelay } from '../platform/event-loop-delay';
import { watchDependencies } from '../platform/dependency-watch';
import { createChunkCollector } from '../platform/heap';
import { openHeaderVault } from '../platform/header-vault';
import { hostProcess, type ProcessHost } from '../platform/host-process';
import { createLogger } from '../platform/logger';
import { createMetricsRegistry } from '../platform/metrics';
import { observabilityPlace } from '../platform/observability-place';
import { startObservabilityServer } from '../platform/observability-server';
import type { RunningProcess, StartOptions } from '../platform/process';
import { StartWait } from '../platform/start-wait';
import { openTracing } from '../platform/tracing/open-tracing';
import { countOperations } from '../storage/objects/count-operations';
import { openCheckedStorage } from '../storage/open-checked-storage';
import { createApiKeyRepository } from '../storage/postgres/api-keys';
import { openTotals } from '../storage/postgres/batches/open-totals';
import { createBatchRepository } from '../storage/postgres/batches/repository';
import { createFileRepository } from '../storage/postgres/files';
import { openPool } from '../storage/postgres/pool';
import { createProviderJobs } from '../storage/postgres/provider-jobs/repository';
import { createUploadRepository } from '../storage/postgres/uploads';
import { buildApp } from './app';
import { createOutbox } from './outbox';

/** Bounds how long a request waits for a database that hangs; a statement takes milliseconds. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** How long uploads and downloads may take to finish at shutdown. */
const DRAIN_MS = 30_000;

/**
 * Runs the API until `close`. Opens everything that it needs, waits for what is away
 * (docs/design/processes.md#start), and releases it in reverse order.
 *
 * @throws config_invalid, port_in_use, postgres_unavailable, schema_outdated, schema_newer,
 *   store_mismatch, object_store_failed
 */
export async function runApi(config: Config, options: StartOptions = {}): Promise<RunningProcess> {
  refusePublicBind(config);
  const logger = createLogger(config.log, 'api');
  return hostProcess(logger, (host) => open(config, { ...options, ...host }));
}

async function open(config: Config, host: ProcessHost & StartOptions): Promise<string> {
  const { logger, onClose } = host;
  const tracing = openTracing(config.tracing, { service: 'nightshift-api', logger });
  onClose('tracing', async () => tracing?.close());
  const registry = createMetricsRegistry('api');
  const metrics = createApiMetrics(registry);
  const place = observabilityPlace(config, 'api');
  const observability = await startObservabilityServer({ ...place, registry, logger });
  onClose('observability', () => observability.close());
  const wait = new StartWait({ ...host, up: metrics.dependencyUp, observability });
  const pool = openPool(config.postgres.url, {
    logger,
    applicationName: 'nightshift-api',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  onClose('postgres', () => pool.end());
  metrics.openBatches.observe(() => openTotals(pool, overdueAfterSec(config.batch)));
  const endDelays = watchEventLoopDelay(metrics.eventLoopDelay);
  onClose('event loop delay', async () => endDelays());
  const storage = await openCheckedStorage(config.object_store, {
    pool,
    wait,
    logger,
    tracing,
    onPassed: createChunkCollector(),
    // A failed operation fails the request, which is answered with 503.
    observe: countOperations(metrics.fileStorageOperations, 'apiserver', () => 'exhausted'),
  });
  onClose('object store', () => storage.close());
  const { store } = storage;
  const observer = countReloads(metrics.credentialReloads, config.temporal);
  const client = openClient(config.temporal, { logger, observer });
  onClose('temporal', () => client.connection.close());
  const checks = {
    postgres: async () => void (await pool.query('select 1')),
    object_store: () => store.check(),
  };
  // Not among `checks`: without Temporal the API still accepts batches, which start later.
  const ping = openTemporalPing(config.temporal);
  onClose('temporal ping', () => ping.close());
  const watched = { ...checks, temporal: () => ping.ask() };
  const watch = watchDependencies({ checks: watched, logger, up: metrics.dependencyUp });
  onClose('dependency watch', () => watch.close());
  const rows = createRepositories(config, pool);
  const outbox = createOutbox({
    ...rows,
    batchWorkflows: createBatchWorkflows(client, { fairness: config.fairness }),
    logger,
  });
  onClose('outbox', () => outbox.close());
  const vault = openHeaderVault(config);
  const app = buildApp({
    ...{ config, ...rows, vault, store, outbox, metrics, tracing, logger, checks },
    lineIndex: createLineIndex(),
  });
  onClose('http', () => app.close(), DRAIN_MS);
  const url = await listen(app, 'api', { settings: config.api, logger });
  observability.markStarted(checks);
  onClose('readiness', async () => observability.markNotReady('draining'));
  return url;
}

function createRepositories({ limits }: Config, pool: ReturnType<typeof openPool>) {
  const { tenant } = limits;
  const tenantLimits = {
    maxBatches: tenant.max_batches,
    maxStoredBytes: tenant.max_stored_bytes,
    maxFiles: tenant.max_files,
    maxUploads: tenant.max_uploads,
    maxUploadParts: tenant.max_upload_parts,
  };
  return {
    files: createFileRepository(pool, tenantLimits),
    batches: createBatchRepository(pool, { limits: tenantLimits }),
    uploads: createUploadRepository(pool, tenantLimits),
    jobs: createProviderJobs(pool),
    apiKeys: createApiKeyRepository(pool),
  };
}

/** Checked here as well, because a caller can build the settings without the loader. */
function refusePublicBind(config: Config): void {
  const fault = publicBindFault(config);
  if (fault !== null) throw new NightshiftError('config_invalid', `api.host: ${fault}`);
}
