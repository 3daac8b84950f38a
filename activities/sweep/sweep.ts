import {
  batchPrefix,
  inputErrorsKey,
  manifestKey,
  modelMapKey,
  uploadPrefix,
} from '../../core/names/object-names';
import type { Config } from '../../platform/config-schema';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchSweepPage, EndedBatchRow, SweepRows } from '../../storage/postgres/sweep';
import { asFailure } from '../runtime/failure';
import { startHeartbeat, type Heartbeat } from '../runtime/heartbeat';
import type { MaintenanceObserver } from '../reconcile/observer';
import { mapConcurrently } from '../../core/async/map-concurrently';
import { removeOrphans } from './orphans';
import type { SweepActivities, SweepKind, SweepPageInput, SweepPageResult } from './types';

/** What the sweep needs of the house. */
export interface SweepDeps {
  readonly rows: SweepRows;
  readonly store: Pick<ObjectStore, 'head' | 'list' | 'delete'>;
  readonly retention: Pick<Config['retention'], 'batches' | 'scratch'>;
  readonly observer: Pick<MaintenanceObserver, 'removed'>;
  /** Removes what crashed writers left in the store; how many. */
  removeTemporary(): Promise<number>;
}

const PAGE_ROWS = 500;
/** A batch may have thousands of segments. */
const PAGE_BATCHES = 20;
const DELETES_AT_ONCE = 8;
const ORPHANS_EVERY_MS = 3_600_000;
/** From the last byte of an upload to its row it is seconds, whatever `retention.scratch` says. */
const MIN_ORPHAN_AGE_MS = 3_600_000;

/**
 * One page of the sweep (execution §5): objects go first and the row, or the mark in it, last, so that
 * a page that was cut short is done again. Rows of open batches are never among those looked at.
 * @throws postgres_unavailable, object_store_failed
 */
export function createSweepPage(deps: SweepDeps): SweepActivities['sweepPage'] {
  const sweepers = { ...SWEEPERS, temporary: createCrashSweeper() };
  return async (input) => {
    const liveness = startHeartbeat();
    try {
      const result = await sweepers[input.kind](deps, input, liveness);
      if (result.removed > 0) deps.observer.removed(input.kind, result.removed);
      return result;
    } catch (error) {
      throw asFailure(error);
    } finally {
      liveness.stop();
    }
  };
}

type Sweeper = (
  deps: SweepDeps,
  input: SweepPageInput,
  liveness: Heartbeat,
) => Promise<SweepPageResult>;

const SWEEPERS: Readonly<Record<Exclude<SweepKind, 'temporary'>, Sweeper>> = {
  files: emptyFiles,
  file_rows: async ({ rows }) => counted(await rows.removeFiles(PAGE_ROWS)),
  scratch: clearBatches,
  batches: removeBatches,
  progress: async ({ rows }) => counted(await rows.removeStaleProgress(PAGE_ROWS)),
  uploads: clearUploads,
  upload_rows: async ({ rows }) => counted(await rows.removeUploads(PAGE_ROWS)),
  idempotency_keys: async ({ rows }) => counted(await rows.removeIdempotencyKeys(PAGE_ROWS)),
};

/**
 * What crashed writers left: files that the store began, and objects that never got a row. The latter
 * takes a look at every file that there is, so a process does it once in an hour.
 */
function createCrashSweeper(): Sweeper {
  let nextSearchAtMs = 0;
  return async ({ rows, store, retention, removeTemporary }, _input, liveness) => {
    let removed = await removeTemporary();
    const startedAtMs = performance.now();
    if (startedAtMs >= nextSearchAtMs) {
      const minAgeMs = Math.max(retention.scratch, MIN_ORPHAN_AGE_MS);
      removed += await removeOrphans({ rows, store, minAgeMs, liveness });
      nextSearchAtMs = startedAtMs + ORPHANS_EVERY_MS;
    }
    return { removed, nextSeq: null };
  };
}

/** What was removed is not found again: the next page begins where this one did. */
function counted(removed: number): SweepPageResult {
  return { removed, nextSeq: removed < PAGE_ROWS ? null : 0 };
}

async function emptyFiles(
  { rows, store }: SweepDeps,
  _input: SweepPageInput,
  liveness: Heartbeat,
): Promise<SweepPageResult> {
  const files = await rows.filesToEmpty(PAGE_ROWS);
  await mapConcurrently(files, DELETES_AT_ONCE, async ({ objectKey }) => {
    liveness.check();
    await store.delete(objectKey);
  });
  await rows.markEmptied(files.map(({ id }) => id));
  return counted(files.length);
}

/** Plans, journals and seals; what is small and says how the batch ended stays with its row. */
async function clearBatches(
  deps: SweepDeps,
  { afterSeq }: SweepPageInput,
  liveness: Heartbeat,
): Promise<SweepPageResult> {
  const page = pageBefore(deps.retention.scratch, afterSeq);
  const batches = await deps.rows.batchesToClear(page);
  let removed = 0;
  for (const batch of batches) {
    if (await mayBeDeliveredLate(deps, batch)) continue;
    const kept = [modelMapKey(batch.id), manifestKey(batch.id), inputErrorsKey(batch.id)];
    removed += await removeObjects(deps, batchPrefix(batch.id), { kept, liveness });
    await deps.rows.markCleared([batch.id]);
  }
  return { removed, nextSeq: nextSeq(batches) };
}

/** A batch with a plan and without files: its finalization was given up, its journal is the answers. */
async function mayBeDeliveredLate({ store }: SweepDeps, batch: EndedBatchRow): Promise<boolean> {
  return !batch.hasFiles && (await store.head(modelMapKey(batch.id))) !== null;
}

async function removeBatches(
  deps: SweepDeps,
  { afterSeq }: SweepPageInput,
  liveness: Heartbeat,
): Promise<SweepPageResult> {
  const batches = await deps.rows.batchesToRemove(pageBefore(deps.retention.batches, afterSeq));
  for (const { id } of batches) {
    await removeObjects(deps, batchPrefix(id), { kept: [], liveness });
    await deps.rows.removeBatches([id]);
  }
  await deps.rows.forgetPlaces(PAGE_ROWS);
  return { removed: batches.length, nextSeq: nextSeq(batches) };
}

/** The API frees the parts at once where it can: this is for what expired, crashed or failed. */
async function clearUploads(
  deps: SweepDeps,
  _input: SweepPageInput,
  liveness: Heartbeat,
): Promise<SweepPageResult> {
  const uploads = await deps.rows.uploadsToClear(PAGE_BATCHES);
  for (const { id, leftOverKeys } of uploads) {
    await removeObjects(deps, uploadPrefix(id), { kept: [], liveness });
    for (const key of leftOverKeys) await deps.store.delete(key);
    await deps.rows.markUploadsCleared([id]);
  }
  return { removed: uploads.length, nextSeq: uploads.length < PAGE_BATCHES ? null : 0 };
}

async function removeObjects(
  { store }: SweepDeps,
  prefix: string,
  { kept, liveness }: { readonly kept: readonly string[]; readonly liveness: Heartbeat },
): Promise<number> {
  let removed = 0;
  await mapConcurrently(store.list(prefix), DELETES_AT_ONCE, async ({ key }) => {
    liveness.check();
    if (kept.includes(key)) return;
    await store.delete(key);
    removed++;
  });
  return removed;
}

function pageBefore(retentionMs: number, afterSeq: number): BatchSweepPage {
  const endedBeforeSec = Math.floor((Date.now() - retentionMs) / 1000);
  return { endedBeforeSec, afterSeq, limit: PAGE_BATCHES };
}

function nextSeq(batches: readonly EndedBatchRow[]): number | null {
  return batches.length < PAGE_BATCHES ? null : (batches.at(-1)?.seq ?? null);
}
