import { ApplicationFailure } from '@temporalio/activity';
import { manifestKey } from '../core/names/object-names';
import type { Config } from '../platform/config-schema';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { ObjectStore } from '../storage/object-store';
import type { ProgressReporter } from '../storage/postgres/progress';
import { startHeartbeat } from './runtime/heartbeat';
import type { BatchActivities, BatchSettings, BatchStepActivities, ModelRoute } from './contract';

export interface BatchStepDeps {
  readonly store: Pick<ObjectStore, 'head'>;
  readonly batches: Pick<
    BatchRepository,
    'find' | 'recordPhase' | 'claimCause' | 'recordUnfinalized'
  >;
  readonly progress: ProgressReporter;
  readonly config: Pick<Config, 'batch' | 'concurrency' | 'worker'>;
  /** Events after which a workflow continues as new; null: the server's suggestion. */
  readonly historyEvents: number | null;
  /** Where the chunks of a model go; null while no live worker can send its requests. */
  routeOf(model: string): ModelRoute | null;
}

type Steps = BatchStepActivities &
  Pick<BatchActivities, 'awaitReleased' | 'awaitRoute' | 'recordUnfinalized'>;

/** The short steps on a batch's row: idempotent, decided by the row alone. */
export function createBatchSteps({
  store,
  batches,
  progress,
  config,
  historyEvents,
  routeOf,
}: BatchStepDeps): Steps {
  const settings = settingsOf(config, historyEvents);
  const { tenant_weights: weights } = config.concurrency;
  return {
    openBatch: async ({ batchId }) => {
      const row = await batches.find(batchId);
      const tenant = row?.tenant ?? '';
      const fairnessWeight = Object.hasOwn(weights, tenant) ? weights[tenant] : undefined;
      return {
        found: row !== null,
        status: row?.status ?? 'validating',
        stopCause: row?.stopCause ?? null,
        tenant,
        endpoint: row?.endpoint ?? '',
        inputKey: row?.inputObjectKey ?? null,
        createdAtMs: (row?.createdAtSec ?? 0) * 1000,
        expiresAtMs: (row?.expiresAtSec ?? 0) * 1000,
        settings: fairnessWeight === undefined ? settings : { ...settings, fairnessWeight },
        ...((await isSettled(store, batchId)) ? { settled: true } : {}),
        ...(row?.status === 'finalizing' && row.stopCause === null ? { answered: true } : {}),
        ...(row?.passesHeaders === true ? { passesHeaders: true } : {}),
      };
    },
    projectStatus: ({ batchId, ...phase }) => batches.recordPhase(batchId, phase),
    claimStop: ({ batchId, cause }) => batches.claimCause(batchId, cause),
    routeModel: ({ model }) => Promise.resolve(routeOf(model)),
    awaitRoute: ({ model }) => {
      const route = routeOf(model);
      if (route !== null) return Promise.resolve(route);
      throw ApplicationFailure.create({
        message: `No running worker has a gateway for the model "${model}". Start one, or cancel the batch.`,
        type: 'not_routed',
        category: 'BENIGN',
      });
    },
    awaitReleased: async ({ batchId, graceMs }) => {
      const liveness = startHeartbeat();
      try {
        await progress.awaitReleased(batchId, graceMs + 5_000);
      } finally {
        liveness.stop();
      }
    },
    recordUnfinalized: ({ batchId, cause }) => batches.recordUnfinalized(batchId, cause),
  };
}

/** A store that does not answer now is no reason to hold the batch up: then the long way is gone. */
async function isSettled(store: BatchStepDeps['store'], batchId: string): Promise<boolean> {
  return (await store.head(manifestKey(batchId)).catch(() => null)) !== null;
}

function settingsOf(config: BatchStepDeps['config'], historyEvents: number | null): BatchSettings {
  return {
    lanesPerModel: config.concurrency.lanes_per_model,
    heartbeatTimeoutMs: config.worker.heartbeat_timeout,
    cancelGraceMs: config.batch.cancel_grace,
    expiryGraceMs: config.batch.expiry_grace,
    finalizeWindowMs: config.batch.finalize_window,
    historyEvents,
    queuedWarningMs: config.batch.reroute_after,
  };
}
