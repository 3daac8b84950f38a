import {
  batchPrefix,
  batchRecordKey,
  inputErrorsKey,
  manifestKey,
  modelMapKey,
} from '../../core/names/object-names';
import type { BatchSweepPage, EndedBatchRow } from '../../storage/postgres/sweep';
import { deletePrefix } from './delete-objects';
import type { SweepDeps, Sweeper } from './ports';

/** Small, because a batch may have thousands of segments. */
const PAGE_BATCHES = 20;
/** List cursors that are removed with a page of batches. */
const PAGE_PLACES = 500;

/** Removes plans, journals and seals. Small objects that record the end of the batch stay with its row. */
export const clearBatches: Sweeper = async (deps, { afterSeq }, check) => {
  const { rows, store } = deps;
  const batches = await rows.batchesToClear(endedBefore(deps.retention.scratch, afterSeq));
  let removed = 0;
  for (const batch of batches) {
    if (await mayBeDeliveredLate(deps, batch)) continue;
    const kept = [modelMapKey(batch.id), manifestKey(batch.id), inputErrorsKey(batch.id)];
    removed += await deletePrefix(store, batchPrefix(batch.id), { kept, check });
    // Without a journal the batch cannot be restored from its record.
    await store.delete(batchRecordKey(batch.id));
    await rows.markCleared([batch.id]);
  }
  return { removed, nextSeq: nextSeq(batches) };
};

/** Removes all objects and the row of each batch. Lists accept its id as a cursor for another day. */
export const removeBatches: Sweeper = async (deps, { afterSeq }, check) => {
  const { rows, store, retention } = deps;
  const batches = await rows.batchesToRemove(endedBefore(retention.batches, afterSeq));
  for (const { id } of batches) {
    await deletePrefix(store, batchPrefix(id), { kept: [], check });
    await store.delete(batchRecordKey(id));
    await rows.removeBatches([id]);
  }
  await rows.forgetPlaces(PAGE_PLACES);
  await rows.removeReleasedJobs(PAGE_PLACES);
  return { removed: batches.length, nextSeq: nextSeq(batches) };
};

/** Whether the batch has a plan but no files: its finalization was given up, and its journal has the answers. */
async function mayBeDeliveredLate({ store }: SweepDeps, batch: EndedBatchRow): Promise<boolean> {
  return !batch.hasFiles && (await store.head(modelMapKey(batch.id))) !== null;
}

function endedBefore(retentionMs: number, afterSeq: number): BatchSweepPage {
  const endedBeforeSec = Math.floor((Date.now() - retentionMs) / 1000);
  return { endedBeforeSec, afterSeq, limit: PAGE_BATCHES };
}

function nextSeq(batches: readonly EndedBatchRow[]): number | null {
  return batches.length < PAGE_BATCHES ? null : (batches.at(-1)?.seq ?? null);
}
