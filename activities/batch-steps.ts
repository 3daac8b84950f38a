import { ApplicationFailure } from '@temporalio/activity';
import { tenantWeight } from '../core/dispatch/fairness-weights';
import { isAudioEndpoint } from '../core/openai/endpoints';
import { manifestKey } from '../core/names/object-names';
import type { Config } from '../platform/config-schema';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { BatchRow } from '../storage/postgres/batches/types';
import type { ObjectStore } from '../storage/object-store';
import type { ProgressReporter } from '../storage/postgres/progress';
import { withHeartbeat } from './runtime/with-heartbeat';
import type {
  BatchActivities,
  BatchSettings,
  BatchStepActivities,
  ModelRoute,
  OpenedBatch,
} from './contract';

/** What the steps need. */
export interface BatchStepDeps {
  readonly store: Pick<ObjectStore, 'head'>;
  readonly batches: Pick<
    BatchRepository,
    'find' | 'recordPhase' | 'claimCause' | 'recordUnfinalized'
  >;
  readonly progress: Pick<ProgressReporter, 'awaitReleased'>;
  readonly config: Pick<Config, 'batch' | 'concurrency' | 'fairness' | 'worker'>;
  /** Events after which a workflow continues as new; null means the server's suggestion. */
  readonly historyEvents: number | null;
  /** Where the chunks of a model go; null while no live worker can send its requests. */
  routeOf(model: string, endpoint?: string): ModelRoute | null;
  /** The longest time that a request of any model may take, ms; null while no live worker sends any. */
  longestTimeoutMs(): number | null;
}

type Steps = BatchStepActivities &
  Pick<BatchActivities, 'awaitReleased' | 'awaitRoute' | 'recordUnfinalized'>;

/** Chunks return by themselves within the grace. This is added to it, for the last one to release its row. */
const AFTER_GRACE_MS = 5_000;

/**
 * Short steps: reading and changing the row of a batch, and looking up routes. All are idempotent
 * (docs/design/temporal.md#local-activities).
 */
export function createBatchSteps(deps: BatchStepDeps): Steps {
  const { batches, progress, routeOf } = deps;
  return {
    openBatch: ({ batchId }) => openBatch(deps, batchId),
    projectStatus: ({ batchId, ...phase }) => batches.recordPhase(batchId, phase),
    claimStop: ({ batchId, cause }) => batches.claimCause(batchId, cause),
    routeModel: ({ model, endpoint }) => Promise.resolve(routeOf(model, endpoint)),
    awaitRoute: ({ model, endpoint }) => {
      const route = routeOf(model, endpoint);
      if (route !== null) return Promise.resolve(route);
      throw ApplicationFailure.create({
        message: `No running worker has a gateway for the model "${model}". Start one, or cancel the batch.`,
        type: 'not_routed',
        category: 'BENIGN',
      });
    },
    awaitReleased: ({ batchId, graceMs }) =>
      withHeartbeat(() => progress.awaitReleased(batchId, graceMs + AFTER_GRACE_MS)),
    recordUnfinalized: ({ batchId, cause }) => batches.recordUnfinalized(batchId, cause),
  };
}

/** The row of a batch, and this worker's settings, which the workflow run keeps to its end. */
async function openBatch(deps: BatchStepDeps, batchId: string): Promise<OpenedBatch> {
  const row = await deps.batches.find(batchId);
  const tenant = row?.tenant ?? '';
  return {
    found: row !== null,
    status: row?.status ?? 'validating',
    stopCause: row?.stopCause ?? null,
    tenant,
    endpoint: row?.endpoint ?? '',
    inputKey: row?.inputObjectKey ?? null,
    createdAtMs: (row?.createdAtSec ?? 0) * 1000,
    expiresAtMs: (row?.expiresAtSec ?? 0) * 1000,
    settings: settingsFor(tenant, deps),
    ...((await isSettled(deps.store, batchId)) ? { settled: true } : {}),
    ...(row?.status === 'finalizing' && row.stopCause === null ? { answered: true } : {}),
    ...(row?.passesHeaders === true ? { passesHeaders: true } : {}),
    announces: true,
    ...smallness(row, deps),
  };
}

/** Input files up to this size are read where requests are sent: a few milliseconds of work. */
const MAX_SMALL_BYTES = 64 * 1024;

/**
 * Whether one activity may do all of a batch (docs/design/execution.md#small-batches). Only a batch that begins: a
 * later run may find chunks of an earlier one at work.
 */
function smallness(
  row: BatchRow | null,
  { longestTimeoutMs }: BatchStepDeps,
): Pick<OpenedBatch, 'small'> {
  if (row === null || row.status !== 'validating' || row.stopCause !== null) return {};
  const { inputObjectKey, inputBytes, endpoint } = row;
  if (inputObjectKey === null || inputBytes === null || inputBytes > MAX_SMALL_BYTES) return {};
  const requestTimeoutMs = isAudioEndpoint(endpoint) ? null : longestTimeoutMs();
  return requestTimeoutMs === null ? {} : { small: { requestTimeoutMs } };
}

/** Whether the manifest exists. If the store does not answer, false: the batch goes on as without one. */
async function isSettled(store: BatchStepDeps['store'], batchId: string): Promise<boolean> {
  return (await store.head(manifestKey(batchId)).catch(() => null)) !== null;
}

function settingsFor(tenant: string, { config, historyEvents }: BatchStepDeps): BatchSettings {
  const { batch, concurrency, fairness, worker } = config;
  return {
    lanesPerModel: concurrency.lanes_per_model,
    heartbeatTimeoutMs: worker.heartbeat_timeout,
    cancelGraceMs: batch.cancel_grace,
    expiryGraceMs: batch.expiry_grace,
    finalizeWindowMs: batch.finalize_window,
    historyEvents,
    queuedWarningMs: batch.reroute_after,
    fairnessWeight: tenantWeight(fairness, tenant),
  };
}
