import { setMaxListeners } from 'node:events';
import { ResultDrafts } from '../activities/finalize/result-drafts';
import { createAttributeCheck } from '../client/attribute-check';
import { createBatchWorkflows } from '../client/batch-workflows';
import { openClient } from '../client/connection';
import { countReloads } from '../client/count-reloads';
import { createBatchEnder } from '../client/batch-ender';
import { createDescribe } from '../client/describe-workflow';
import { createListRunning } from '../client/list-running';
import { openTemporalPing } from '../client/temporal-ping';
import type { NightshiftError } from '../core/errors';
import { createMemoryBudget } from '../inference/memory-budget';
import type { PermitSource } from '../inference/loans/permit-source';
import { createPermitDispatcher, type PermitDispatcher } from '../inference/permit-dispatcher';
import type { OnBreaker } from '../inference/registry';
import { createRegistry, NO_GATEWAYS, type Registry } from '../inference/registry';
import type { Config } from '../platform/config';
import type { Logger } from '../platform/logger';
import { openHeaderVault } from '../platform/header-vault';
import type { Tracing } from '../platform/tracing/tracing';
import type { WorkerMetrics } from '../platform/worker-metrics';
import { tenantHash } from '../storage/objects/tenant-hash';
import { findBatchHeaders } from '../storage/postgres/batches/headers';
import { createBatchRepository } from '../storage/postgres/batches/repository';
import { createProgressReporter } from '../storage/postgres/progress';
import { listenForStops } from '../storage/postgres/stop-channel';
import { createProviderJobs } from '../storage/postgres/provider-jobs/repository';
import { createSweepRows } from '../storage/postgres/sweep';
import { enqueueRequests } from '../storage/postgres/tenant-limits';
import { createWorkerRoutes } from '../storage/postgres/worker-routes';
import { openProviders, type OpenProviders } from './open-providers';
import { slotsOf } from './create-workers';
import { countSweep } from './count-sweep';
import { createDelegateObserver } from './delegate-observer';
import { countEnds } from './ended-batches';
import { createFindTracedBatch } from './find-traced-batch';
import { createFirstRequests } from './first-requests';
import { createGivenBack, type GivenBack } from './given-back';
import { createMaintenanceObserver } from './maintenance-observer';
import type { WorkerStores } from './open-stores';
import { createPassThrough } from './pass-through';
import { createRequestObserver } from './request-observer';
import { openRouteDirectory } from './route-directory';
import { traceEnds, traceRestarts, type TraceBatchesDeps } from './trace-batches';
import type { ActivityDeps } from './wiring';
import { workerIdentity } from './wiring';

/** What the resources of a worker share. */
export interface ResourceContext {
  readonly logger: Logger;
  readonly metrics: WorkerMetrics;
  readonly tracing: Tracing | null;
  readonly drain: AbortSignal;
  /** Where permits come from; by default, this process shares them with no other one. */
  readonly permits?: PermitSource | undefined;
  readonly onGuardTripped: (error: NightshiftError) => void;
}

/** Everything that activities use, with its health checks and its release steps. */
export interface WorkerResources extends ActivityDeps {
  readonly traces: TraceBatchesDeps;
  /** Connects to Temporal at its first call. */
  readonly client: ReturnType<typeof openClient>;
  readonly checks: Readonly<Record<string, () => Promise<void>>>;
  readonly release: readonly { name: string; run(): Promise<void> }[];
  /** Counts batches that this process gives back when it shuts down. */
  readonly givenBack: GivenBack;
}

/**
 * Opens everything that a worker needs beside its stores and its connection to Temporal, which the caller
 * closes after it has run `release`. Announces the models that this worker sends, so call it when the worker can begin.
 * @throws config_invalid
 */
export async function openResources(
  config: Config,
  context: ResourceContext & { readonly stores: WorkerStores },
): Promise<WorkerResources> {
  const { logger, metrics, drain, stores } = context;
  // Every running chunk adds a listener, so Node's default warning at 11 listeners makes no sense.
  setMaxListeners(0, drain);
  const worker = workerIdentity();
  const registry = openRegistry(config, context);
  const { storage, pool, progressPool } = stores;
  const providers = openConfiguredProviders(config);
  const { store, journal } = storage;
  const { url } = config.postgres;
  const progress = openProgress(progressPool, { worker, logger, metrics });
  const stops = listenForStops({ url, logger, onStop: (batchId) => progress.checkNow(batchId) });
  const routes = await openRoutes(progressPool, { registry, worker, logger });
  const observer = countReloads(metrics.credentialReloads, config.temporal);
  const client = openClient(config.temporal, { logger, observer });
  const measured = openMeasured(pool, config, context);
  const ping = openTemporalPing(config.temporal);
  showLimits(config, metrics);
  return {
    config,
    store,
    journal,
    drafts: new ResultDrafts({ store, journal, tenantHash }),
    registry,
    routes,
    progress,
    logger,
    worker,
    drain,
    memory: createMemoryBudget(config.concurrency.in_flight_bytes),
    ...measured,
    ...openTenantDeps(config, pool),
    delegation: delegationOver(pool, { providers, metrics, dispatcher: measured.dispatcher }),
    client,
    sharesPermits: context.permits !== undefined,
    showsProviders: createAttributeCheck(client, 'BatchProviders'),
    maintenance: {
      sweepRows: createSweepRows(pool),
      sweepStore: storage.observedBy(countSweep(metrics.fileStorageOperations)),
      workflows: traceRestarts(openWorkflows(client, config.fairness), measured.traces),
      observer: createMaintenanceObserver(metrics),
    },
    checks: {
      postgres: async () => void (await pool.query('select 1')),
      object_store: () => store.check(),
      temporal: () => ping.ask(),
    },
    release: [
      { name: 'temporal client', run: () => client.connection.close() },
      { name: 'temporal ping', run: () => ping.close() },
      { name: 'stop channel', run: () => stops.close() },
      { name: 'progress', run: () => progress.close() },
      { name: 'routes', run: () => routes.close() },
      { name: 'gateways', run: () => registry.close() },
      { name: 'providers', run: () => providers.close() },
    ],
  };
}

/** Permits, rows and requests, with the metrics and spans that they feed. */
function openMeasured(
  pool: WorkerStores['pool'],
  config: Config,
  context: ResourceContext,
): Pick<WorkerResources, 'batches' | 'givenBack' | 'observer' | 'tracing' | 'traces'> & {
  readonly dispatcher: PermitDispatcher;
} {
  const { metrics, tracing } = context;
  const dispatcher = openDispatcher(config, context);
  const onEnded = countEnds(metrics);
  const batches = createBatchRepository(pool, { ...expiryOf(config), onEnded });
  const givenBack = createGivenBack(metrics, () => dispatcher.stats().guardTripped);
  const onRequest = createFirstRequests({ metrics, batches });
  const observer = createRequestObserver({ metrics, onRequest, givenBack });
  const traces = { tracing, find: createFindTracedBatch(batches) };
  const traced = { batches: traceEnds(batches, traces), tracing, traces };
  return { dispatcher, givenBack, observer, ...traced };
}

/** The calls to Temporal that reconcile makes. */
function openWorkflows(
  client: WorkerResources['client'],
  fairness: Config['fairness'],
): ActivityDeps['maintenance']['workflows'] {
  return {
    ...createBatchWorkflows(client, { reuse: 'ALLOW_DUPLICATE', fairness }),
    ...createBatchEnder(client),
    describe: createDescribe(client),
    listRunning: createListRunning(client),
  };
}

/** A worker that sends nothing needs no gateway, and none of its keys. @throws config_invalid */
function openRegistry(config: Config, context: ResourceContext): Registry {
  const sends = config.worker.roles.includes('exec');
  return sends ? createRegistry(config, reportBreaker(context)) : NO_GATEWAYS;
}

function delegationOver(
  pool: WorkerStores['pool'],
  { providers, metrics, dispatcher }: DelegationSources,
): ActivityDeps['delegation'] {
  return {
    requestsEnded: () => dispatcher.released,
    jobs: createProviderJobs(pool),
    provider: (name) => providers.get(name),
    providers: providers.all,
    observer: createDelegateObserver(metrics),
  };
}

interface DelegationSources {
  readonly providers: OpenProviders;
  readonly metrics: WorkerMetrics;
  readonly dispatcher: { readonly released: number };
}

/** A worker that sends nothing needs no provider, and none of its keys. @throws config_invalid */
function openConfiguredProviders(config: Config): OpenProviders {
  const sends = config.worker.roles.includes('exec');
  return openProviders(sends ? config : { ...config, providers: {} });
}

function expiryOf({ retention }: Config): { outputFilesSec: number } {
  return { outputFilesSec: Math.round(retention.output_files / 1000) };
}

function openRoutes(
  pool: WorkerStores['pool'],
  rest: { registry: Registry; worker: string; logger: Logger },
) {
  return openRouteDirectory({ ...rest, table: createWorkerRoutes(pool) });
}

function openProgress(
  pool: WorkerStores['pool'],
  { worker, logger, metrics }: Pick<ResourceContext, 'logger' | 'metrics'> & { worker: string },
) {
  const onFailed = () => metrics.progressWriteFailures.inc();
  return createProgressReporter({ pool, worker, logger, onFailed });
}

function showLimits(config: Config, metrics: WorkerMetrics): void {
  metrics.totalWorkers.set(slotsOf(config));
  metrics.maxInflightConcurrency.set(config.concurrency.global);
}

/** What depends on the tenant of a batch. @throws config_invalid */
function openTenantDeps(config: Config, pool: WorkerStores['pool']) {
  const max = config.limits.tenant.max_enqueued_requests;
  const vault = openHeaderVault(config);
  return {
    enqueue: (batchId: string, requests: number) =>
      enqueueRequests(pool, { batchId, requests, max }),
    passThrough: createPassThrough((batchId) => findBatchHeaders(pool, batchId), vault),
  };
}

/** Shows operators, in a metric and the log, when a gateway's circuit breaker opens and closes. */
function reportBreaker({ logger, metrics }: ResourceContext): OnBreaker {
  return (gateway, state) => {
    metrics.gatewayBreakerOpen.set({ gateway }, state === 'open' ? 1 : 0);
    if (state === 'open') logger.warn({ gateway }, 'gateway is away: one probe at a time');
    else logger.info({ gateway }, 'gateway answers again');
  };
}

function openDispatcher(config: Config, context: ResourceContext) {
  const { logger, metrics, permits, onGuardTripped } = context;
  const { global_inference_gateway: global, model_gateways: perModel = {} } = config;
  const gateways = global === undefined ? Object.values(perModel) : [global];
  const dispatcher = createPermitDispatcher({
    global: config.concurrency.global,
    perModel: config.concurrency.per_model,
    adaptive: config.concurrency.adaptive,
    fairness: config.fairness,
    ...(permits === undefined ? {} : { source: permits }),
    divides: gateways.length > 0 && gateways.every((one) => one.send_fairness_header),
    onGuardTripped: (error) => {
      logger.fatal({ err: error, reason: 'guard_shutdown' }, 'a permit was released twice');
      onGuardTripped(error);
    },
  });
  metrics.modelLimits.observe(() => dispatcher.stats().models);
  return dispatcher;
}
