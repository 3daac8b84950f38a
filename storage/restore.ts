import { forEachConcurrently } from '../core/async/for-each-concurrently';
import { isNightshiftError, nullIfMissing } from '../core/errors';
import { parseBatchRecord, type BatchRecord } from '../core/journal/batch-record';
import {
  BATCH_RECORDS_PREFIX,
  batchRecordKey,
  inputFilesKey,
  manifestKey,
  modelMapKey,
  parseBatchRecordKey,
  sealsPrefix,
} from '../core/names/object-names';
import { parseInputFiles } from '../core/plan/input-files';
import { parseModelMap } from '../core/plan/model-map';
import type { ObjectStore } from './object-store';
import type { RestoredRows, StoredFile } from './postgres/restored-rows';

/** What a restore reads and changes. */
export interface RestoreDeps {
  readonly rows: RestoredRows;
  readonly store: Pick<ObjectStore, 'head' | 'list' | 'read' | 'delete'>;
}

/**
 * What a restore does with a batch that has no row:
 * - `continues`: its row is back, and its workflow goes on from its journal
 * - `ends`: its row is back, but its pass-through headers are lost; it delivers what is answered
 * - `too_old`: it ended so long ago that its journal was removed; nothing is left to deliver from
 * - `unreadable`: its record is damaged, or a later release has written it. It stays, and sweeps wait for it
 */
export type LostBatchFate = 'continues' | 'ends' | 'too_old' | 'unreadable';

/** What a restore did or, in a dry run, would do. */
export interface RestoreReport {
  readonly batches: readonly { readonly id: string; readonly fate: LostBatchFate }[];
  /** Files that were deleted since the backup. */
  readonly filesGone: number;
}

const IDS_AT_ONCE = 500;
const HEADS_AT_ONCE = 16;

/**
 * Brings a database that is older than its object store up to what the store knows: rows of batches that
 * it lacks, and files whose bytes are gone (docs/backup.md#restore). May run any number of times, also
 * while workers run. With `dryRun` it changes nothing. @throws postgres_unavailable, object_store_failed
 */
export async function restoreRows(
  deps: RestoreDeps,
  { dryRun }: { readonly dryRun: boolean },
): Promise<RestoreReport> {
  if (!dryRun) {
    await deps.rows.skipEpochs();
    await deps.rows.holdCreates();
  }
  const batches: { id: string; fate: LostBatchFate }[] = [];
  for await (const id of lostBatches(deps)) {
    const record = await readRecord(deps.store, id);
    if (record === null) continue;
    const fate = record === 'unreadable' ? record : await restoreBatch(deps, record, dryRun);
    batches.push({ id, fate });
  }
  return { batches, filesGone: await markFilesGone(deps, dryRun) };
}

async function* lostBatches({ rows, store }: RestoreDeps): AsyncGenerator<string> {
  let ids: string[] = [];
  for await (const { key } of store.list(BATCH_RECORDS_PREFIX)) {
    const id = parseBatchRecordKey(key);
    if (id === null) continue;
    ids.push(id);
    if (ids.length < IDS_AT_ONCE) continue;
    yield* await rows.withoutRow(ids);
    ids = [];
  }
  yield* await rows.withoutRow(ids);
}

/** Null if the record was removed since the listing, by another restore that runs at the same time. */
async function readRecord(
  store: RestoreDeps['store'],
  id: string,
): Promise<BatchRecord | 'unreadable' | null> {
  try {
    return parseBatchRecord(await store.read(batchRecordKey(id)));
  } catch (error) {
    if (isNightshiftError(error, 'object_missing')) return null;
    // One damaged object must not keep all other batches from coming back.
    if (isNightshiftError(error, 'object_corrupt')) return 'unreadable';
    throw error;
  }
}

async function restoreBatch(
  { rows, store }: RestoreDeps,
  record: BatchRecord,
  dryRun: boolean,
): Promise<LostBatchFate> {
  const { id } = record;
  const isClosed = (await store.head(manifestKey(id))) !== null;
  if (isClosed && !(await hasSeals(store, id))) {
    // Without the record, sweeps no longer wait for a row that cannot come back.
    if (!dryRun) await store.delete(batchRecordKey(id));
    return 'too_old';
  }
  // What the manifest says about the end outweighs the loss of headers that are no longer needed.
  const cause = record.passes_headers && !isClosed ? 'failed' : null;
  if (!dryRun) {
    // No sweep removes files while the batch lacks its row.
    if (!isClosed) await pinFiles({ rows, store }, id);
    await rows.insertBatch(record, cause);
  }
  return cause === null ? 'continues' : 'ends';
}

/** Pins what requests of the batch name. Without a plan, ingestion looks the files up again. */
async function pinFiles({ rows, store }: RestoreDeps, batchId: string): Promise<void> {
  const map = await nullIfMissing(store.read(modelMapKey(batchId)));
  if (map === null) return;
  const key = inputFilesKey(batchId, parseModelMap(map).nonce);
  const files = await nullIfMissing(store.read(key));
  if (files !== null) await rows.pinFiles(batchId, [...parseInputFiles(files).keys()]);
}

async function hasSeals(store: RestoreDeps['store'], id: string): Promise<boolean> {
  for await (const { key } of store.list(sealsPrefix(id))) if (key !== '') return true;
  return false;
}

const PAGE_FILES = 1_000;

/** Looks up the object of every file. Returns how many are missing. */
async function markFilesGone({ rows, store }: RestoreDeps, dryRun: boolean): Promise<number> {
  let gone = 0;
  let page: StoredFile[];
  let afterSeq = 0;
  do {
    page = await rows.filesWithBytes(afterSeq, PAGE_FILES);
    afterSeq = page.at(-1)?.seq ?? afterSeq;
    const missing: string[] = [];
    await forEachConcurrently(page, HEADS_AT_ONCE, async ({ id, objectKey }) => {
      if ((await store.head(objectKey)) === null) missing.push(id);
    });
    if (!dryRun && missing.length > 0) await rows.markGone(missing);
    gone += missing.length;
  } while (page.length === PAGE_FILES);
  return gone;
}
