import { hostname } from 'node:os';
import type { ExecuteDeps } from '../activities/execute/deps';
import { createBatchSteps } from '../activities/batch-steps';
import { createEndUnrouted } from '../activities/execute/end-unrouted';
import { createExecuteChunk } from '../activities/execute/execute-chunk';
import { withBoundedFailures } from '../activities/runtime/failure';
import {
  createFinalize,
  createFinalizeNow,
  type FinalizeDeps,
} from '../activities/finalize/finalize';
import type { ResultDrafts } from '../activities/finalize/result-drafts';
import { createIngest } from '../activities/ingest/ingest';
import { recordBatch } from '../activities/ingest/record-batch';
import type { ReconcileDeps } from '../activities/reconcile/reconcile';
import { createReconcilePage } from '../activities/reconcile/reconcile';
import { createDeliverLate, readNonce } from '../activities/reconcile/late-delivery';
import type { ReconcileActivities } from '../activities/reconcile/contract';
import type { SweepDeps } from '../activities/sweep/ports';
import { createSweepPage } from '../activities/sweep/sweep';
import type { SweepActivities } from '../activities/sweep/contract';
import type { BatchActivities, SmallBatchActivities } from '../activities/contract';
import { ConcurrencyLimit } from '../core/async/concurrency-limit';
import type { DelegateActivities } from '../activities/delegate/contract';
import type { DelegateDeps, OpenProvider } from '../activities/delegate/deps';
import { createCollectJob } from '../activities/delegate/collect-job';
import { LineFiles } from '../activities/delegate/line-files';
import { createOpenParts } from '../activities/delegate/open-parts';
import { createSettlePart } from '../activities/delegate/settle-part';
import { createSubmitJob } from '../activities/delegate/submit-job';
import { createWatchJob } from '../activities/delegate/watch-job';
import type { IngestDeps } from '../activities/ingest/deps';
import { createLineIndex } from '../core/openai/line-index';
import { overdueAfterSec } from '../core/batch/overdue';
import type { Config } from '../platform/config-schema';
import { version } from '../platform/version';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import { tenantHash } from '../storage/objects/tenant-hash';
import { accountOf } from '../providers/account';
import type { DelegateObserver } from '../activities/delegate/observer';
import { announcePlan } from './announce-plan';
import type { RouteDirectory } from './route-directory';
import { SharedRows } from './shared-rows';
import { prepareSending, type Sending } from './prepare-sending';
import { withProviders, withRoutes } from './with-routes';

/** Everything that the activities of a worker are made from. */
export interface ActivityDeps extends ExecuteDeps {
  readonly config: Config;
  readonly batches: BatchRepository;
  /** Counts a batch's requests against its tenant's limit; undefined without such a limit. */
  readonly enqueue?: NonNullable<IngestDeps['enqueue']>;
  readonly sharesPermits: Sending['sharesPermits'];
  /** Result files that chunks have begun. */
  readonly drafts: ResultDrafts;
  /** Events after which a workflow continues as new; null: the server's suggestion. */
  readonly historyEvents?: number | null;
  readonly maintenance: MaintenanceDeps;
  readonly routes: Pick<RouteDirectory, 'routeOf' | 'isKnown' | 'longestTimeoutMs' | 'update'>;
  /** Whether Temporal's namespace has the search attribute `BatchProviders`. Never rejects. */
  readonly showsProviders: () => Promise<boolean>;
  readonly delegation: Pick<DelegateDeps, 'jobs' | 'provider' | 'requestsEnded'> & {
    readonly observer: DelegateObserver;
    /** The providers of this process. */
    readonly providers: readonly OpenProvider[];
  };
}

/** What only reconcile and sweep need. */
export interface MaintenanceDeps {
  readonly workflows: ReconcileDeps['workflows'];
  readonly observer: ReconcileDeps['observer'] & SweepDeps['observer'];
  readonly sweepRows: SweepDeps['rows'];
  /** The store, with failures counted as the sweep's. */
  readonly sweepStore: SweepDeps['store'];
}

/** The activities of a worker that do one step each. */
export type StepActivities = BatchActivities &
  DelegateActivities &
  ReconcileActivities &
  SweepActivities;

/** All activities of a worker. */
export type WorkerActivities = StepActivities & SmallBatchActivities;

/** Makes the steps of a worker from what its process opened. */
export function createActivities(deps: ActivityDeps): StepActivities {
  const { store, batches, routes, config, progress } = deps;
  const rows = new SharedRows((batchId) => batches.find(batchId));
  const ingest = createIngest({
    store,
    batches: { input: (batchId) => rows.find(batchId) },
    isRouted: (model) => config.delegates[model] !== undefined || routes.isKnown(model),
    refreshRoutes: () => routes.update(),
    ...(deps.enqueue === undefined ? {} : { enqueue: deps.enqueue }),
    pinFiles: (batchId, fileIds) => batches.pinFiles(batchId, fileIds),
    record: async (batchId) => {
      const row = await rows.find(batchId);
      if (row !== null) await recordBatch(store, row);
    },
    lineIndex: createLineIndex(),
    release: version(),
    limits: config.limits,
    batch: config.batch,
  });
  return withBoundedFailures({
    ...createMaintenance(deps),
    ...createBatchSteps({
      store,
      batches,
      progress,
      config,
      historyEvents: deps.historyEvents ?? null,
      routeOf: (model, endpoint) => routes.routeOf(model, endpoint),
      longestTimeoutMs: () => routes.longestTimeoutMs(),
    }),
    ingest: ({ batchId, announces, ...input }) =>
      rows.during(batchId, async () => {
        const result = await ingest({ batchId, ...input });
        const row = await rows.find(batchId);
        const routed = withRoutes(result, { routes, config, row });
        if (row !== null) prepareSending(routed, row.endpoint, deps);
        const planned = await withProviders(routed, deps.showsProviders);
        if (announces !== true) return planned;
        return announcePlan(planned, (phase) => batches.recordPhase(batchId, phase));
      }),
    executeChunk: createExecuteChunk(deps),
    endUnrouted: createEndUnrouted({ ...deps, isKnownNow: (model) => isKnownNow(routes, model) }),
    ...createDelegation(deps),
    finalize: createFinalize(finalizing(deps)),
  });
}

/** Staged or collected at once: one thread works on them, so more of them would only take memory. */
const PARTS_IN_MEMORY = 2;

/** Activities that run models through the batch APIs of providers. */
function createDelegation(deps: ActivityDeps): DelegateActivities {
  const { jobs, provider, observer, requestsEnded } = deps.delegation;
  const parts = new ConcurrencyLimit(PARTS_IN_MEMORY);
  const lineFiles = new LineFiles(deps.store);
  const delegating: DelegateDeps = {
    ...{ ...deps, parts, lineFiles },
    ...{ jobs, provider, observer, requestsEnded },
  };
  return {
    openParts: createOpenParts({ ...delegating, accountOf }),
    submitJob: createSubmitJob(delegating),
    watchJob: createWatchJob(delegating),
    collectJob: createCollectJob(delegating),
    settlePart: createSettlePart({ ...deps, jobs }),
  };
}

function finalizing({ store, journal, batches, drafts }: ActivityDeps): FinalizeDeps {
  return { store, journal, batches, drafts, tenantHash };
}

/** Activities that work on all batches: reconcile, late delivery and sweep. */
function createMaintenance(deps: ActivityDeps): ReconcileActivities & SweepActivities {
  const { store, batches, progress, config, maintenance } = deps;
  const { sweepRows, sweepStore, workflows, observer } = maintenance;
  const { cancel_grace, finalize_window } = config.batch;
  const graceMs = cancel_grace + 5_000;
  return {
    reconcilePage: createReconcilePage({
      ...{ batches, progress, store, workflows, observer },
      ...{ graceMs, finalizeWindowMs: finalize_window },
      overdueAfterSec: overdueAfterSec(config.batch),
      nonceOf: (batchId) => readNonce(store, batchId),
      finalize: createFinalizeNow(finalizing(deps)),
    }),
    deliverLate: createDeliverLate({
      batches,
      store,
      finalize: createFinalize({
        ...finalizing(deps),
        batches: { ...batches, recordEnd: (record) => batches.recordLateDelivery(record) },
      }),
    }),
    sweepPage: createSweepPage({
      rows: sweepRows,
      store: sweepStore,
      observer,
      retention: config.retention,
    }),
  };
}

/** Whether a recent worker could send `model`. Reads the announcements again before it returns false. */
async function isKnownNow(routes: ActivityDeps['routes'], model: string): Promise<boolean> {
  if (routes.isKnown(model)) return true;
  await routes.update();
  return routes.isKnown(model);
}

/** Identity of this process in results, rows and polls of Temporal. */
export function workerIdentity(): string {
  return `${process.pid}@${hostname()}`;
}
