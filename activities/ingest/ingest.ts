import { Context } from '@temporalio/activity';
import { fitsModelNames } from '../../core/batch/temporal-bounds';
import { NightshiftError } from '../../core/errors';
import type { IngestInput } from '../contract';
import { withHeartbeat } from '../runtime/with-heartbeat';
import type { IngestDeps, Ingestion } from './deps';
import { IngestAttempt, MAX_CRASHES } from './ingest-attempt';
import { earlierResult, writeErrors, writePlan, type IngestResult } from './outcome';
import {
  fileTooLarge,
  modelNamesTooLong,
  tooManyEnqueued,
  unprocessable,
  unusableFile,
} from './refused-file';
import { hasNewRoutes, inputMissing, scanFile } from './scan-file';
import { ScanGate } from './scan-gate';

/**
 * How many models without a route get a plan, so that they can be looked up again. Limited, because each
 * plan costs objects and an activity, and a client can invent any number of names.
 */
const MAX_UNDECIDED = 20;

/**
 * The activity that turns an input file into plans (docs/design/batch-path.md#ingestion). It reads the
 * input and writes either the plans and then `model_map.json`, or `errors.json`. If one of these two
 * objects exists already, it is the result, so the activity may run any number of times, also concurrently.
 * @throws not_found if the batch has no row; input_missing if the input object is gone; plan_unreadable
 */
export function createIngest(deps: IngestDeps): (input: IngestInput) => Promise<IngestResult> {
  const gate = new ScanGate();
  return async ({ batchId, decidesLater }) => {
    const maxUndecided = decidesLater === true ? MAX_UNDECIDED : 0;
    const attempt = new IngestAttempt(Context.current().info);
    return withHeartbeat(
      async (heartbeat) => {
        try {
          const earlier = await earlierResult(deps.store, batchId);
          if (earlier !== null) return earlier;
          return await ingest({ deps, batchId, heartbeat, attempt, gate, maxUndecided });
        } catch (error) {
          attempt.endByItself();
          throw error;
        }
      },
      { details: (bytes) => ({ bytes, ...attempt.details }), beatsOnFailure: true },
    );
  };
}

async function ingest(ingestion: Ingestion): Promise<IngestResult> {
  const { deps, batchId, attempt } = ingestion;
  const { store, limits } = deps;
  if (attempt.crashes >= MAX_CRASHES) return writeErrors(store, batchId, [unprocessable()]);
  const input = await deps.batches.input(batchId);
  if (input === null) throw new NightshiftError('not_found', `there is no batch ${batchId}`);
  const { inputObjectKey: key, endpoint } = input;
  if (key === null) return writeErrors(store, batchId, [unusableFile()]);
  const size = (await store.head(key))?.size;
  if (size === undefined) throw inputMissing(batchId);
  if (size > limits.max_file_bytes) {
    return writeErrors(store, batchId, [fileTooLarge(size, limits)]);
  }

  const file = { key, bytes: size, endpoint };
  let scanned = await scanFile(ingestion, file);
  if (await hasNewRoutes(deps, scanned)) scanned = await scanFile(ingestion, file);
  const { plan, errors, requests, files } = scanned;
  if (!fitsModelNames(plan.modelNames())) errors.add(modelNamesTooLong());
  if (errors.count > 0) return writeErrors(store, batchId, errors.list());
  if (deps.enqueue !== undefined && !(await deps.enqueue(batchId, requests))) {
    return writeErrors(store, batchId, [tooManyEnqueued(requests, limits)]);
  }
  // A planned batch may be sent, and its answers must never lack a record.
  const record = async (): Promise<void> => deps.record?.(batchId);
  return writePlan(store, batchId, { plan, lineCount: requests, files, record });
}
