import { hostname } from 'node:os';
import type { ExecuteDeps } from '../activities/execute/deps';
import { createBatchSteps } from '../activities/batch-steps';
import { createExecuteChunk } from '../activities/execute-chunk';
import { createFinalize } from '../activities/finalize';
import { createIngest } from '../activities/ingest';
import type { BatchActivities, PlannedOrInvalid } from '../activities/types';
import type { IngestResult } from '../activities/ingest';
import type { Registry } from '../inference/registry';
import type { Config } from '../platform/config-schema';
import type { BatchRecords } from '../storage/postgres/batch-records';
import { tenantHash } from '../storage/objects/tenant-hash';
import { execQueue } from '../workflows/contract';

/** Everything that the activities of a worker are made from. */
export interface ActivityParts extends ExecuteDeps {
  readonly config: Config;
  readonly records: BatchRecords;
  /** Events after which a workflow continues as new; null: the server's suggestion. */
  readonly historyEvents?: number | null;
}

/** All activities of a worker, from the parts that its process opened. */
export function createActivities(parts: ActivityParts): BatchActivities {
  const { store, journal, records, registry, config, progress } = parts;
  const ingest = createIngest({
    store,
    batches: { input: (batchId) => records.open(batchId) },
    isRouted: (model) => registry.isRouted(model),
    limits: config.limits,
    batch: config.batch,
  });
  return {
    ...createBatchSteps({ records, progress, config, historyEvents: parts.historyEvents ?? null }),
    ingest: async (input) => withRoutes(await ingest(input), registry),
    executeChunk: createExecuteChunk(parts),
    finalize: createFinalize({
      store,
      journal,
      batches: { forFinalize: (batchId) => records.open(batchId) },
      record: records,
      tenantHash,
    }),
  };
}

/** Adds to each planned model where its chunks run; a model that lost its gateway goes to the first. */
function withRoutes(result: IngestResult, registry: Registry): PlannedOrInvalid {
  if (result.kind === 'invalid') return result;
  return {
    ...result,
    models: result.models.map((model) => {
      const route = registry.route(model.model);
      return {
        ...model,
        queue: execQueue(route?.key ?? registry.gateways[0]?.key ?? 'default'),
        requestTimeoutMs: route?.gateway.request_timeout ?? 60_000,
      };
    }),
  };
}

/** How this worker signs results, rows and Temporal's polls. */
export function workerIdentity(): string {
  return `${process.pid}@${hostname()}`;
}
