import type { Pool } from 'pg';
import { OPEN_STATUSES, TERMINAL_STATUSES } from '../../core/batch/status';
import { unownedKeys } from './object-owners';
import { batchesWithoutRow } from './restored-rows';
import { query } from './sql';

/**
 * The statements of the sweep (docs/design/read-model.md#retention). Rows decide which objects may be
 * removed. The sweep removes objects before their rows, so that the next sweep completes one that crashed.
 * All methods: @throws postgres_unavailable
 */
export interface SweepRows {
  /** Files that are deleted or expired and still have bytes, which no open batch needs. */
  filesToEmpty(limit: number): Promise<FileToEmpty[]>;
  /** Notes that their bytes are removed. */
  markEmptied(fileIds: readonly string[]): Promise<void>;
  /** Removes rows of files without bytes that are no longer valid as cursors; returns how many. */
  removeFiles(limit: number): Promise<number>;
  /** Batches after `afterSeq` that ended before `endedBeforeSec` (Unix) and still have plan and journal. */
  batchesToClear(page: BatchSweepPage): Promise<EndedBatchRow[]>;
  /** Notes that their plans, journals and seals are removed. */
  markCleared(batchIds: readonly string[]): Promise<void>;
  /** Batches after `afterSeq` that ended before `endedBeforeSec` (Unix). */
  batchesToRemove(page: BatchSweepPage): Promise<EndedBatchRow[]>;
  /** Removes rows of ended batches; their places stay valid as cursors. */
  removeBatches(batchIds: readonly string[]): Promise<void>;
  /** Forgets the places of batches that were removed a day ago. */
  forgetPlaces(limit: number): Promise<void>;
  /** Removes jobs of removed batches of which nothing is left at their provider. */
  removeReleasedJobs(limit: number): Promise<void>;
  /** Removes progress of chunks whose batch has ended or is removed; returns how many. */
  removeStaleProgress(limit: number): Promise<number>;
  /** Uploads that ended an hour ago and still have objects. */
  uploadsToClear(limit: number): Promise<EndedUploadRow[]>;
  /** Notes that their objects are removed. */
  markUploadsCleared(uploadIds: readonly string[]): Promise<void>;
  /** Removes rows of uploads that ended a day ago, and the rows of their parts; returns how many uploads. */
  removeUploads(limit: number): Promise<number>;
  /** The given batches that have no row. */
  withoutRow(batchIds: readonly string[]): Promise<string[]>;
  /** The given keys whose objects have no owner. */
  unownedKeys(keys: readonly string[]): Promise<string[]>;
  /** Removes keys of requests that were made more than a day ago; returns how many. */
  removeIdempotencyKeys(limit: number): Promise<number>;
}

/** A file whose bytes are to be removed. */
export interface FileToEmpty {
  readonly id: string;
  readonly objectKey: string;
  readonly bytes: number;
}

/** One page in order of insertion. */
export interface BatchSweepPage {
  readonly endedBeforeSec: number;
  readonly afterSeq: number;
  readonly limit: number;
}

/** A batch that has ended; `hasFiles` if its result files were delivered. */
export interface EndedBatchRow {
  readonly id: string;
  readonly seq: number;
  readonly hasFiles: boolean;
}

/** An upload that has ended; the keys of its parts share its prefix. */
export interface EndedUploadRow {
  readonly id: string;
  /** Objects of completions that failed. */
  readonly leftOverKeys: readonly string[];
}

/**
 * Clocks differ: a file that has expired here may still be valid for another process, whose new batch may
 * pin it. After this time, the file has expired for every process.
 */
const CLOCK_MARGIN_SEC = 300;
/** How long a hidden or removed row stays valid as a cursor (docs/design/api-contract.md#cursors). */
const CURSOR_LIFE_SEC = 24 * 3600;
/** Parts and completions that were in flight when an upload ended have finished after this time. */
const UPLOAD_MARGIN_SEC = 3600;
/** How long a repeated completion or idempotency key gets its object (docs/design/api-contract.md#idempotency). */
const REPEAT_LIFE_SEC = 24 * 3600;
/** A late chunk attempt may write progress after its batch has ended; the row is removed after this time. */
const STALE_PROGRESS = '1 hour';

const NOW_SEC = 'floor(extract(epoch from now()))::bigint';
const ENDED_AT = 'coalesce(completed_at, failed_at, expired_at, cancelled_at)';
const OPEN = [...OPEN_STATUSES];
const TERMINAL = [...TERMINAL_STATUSES];

/** {@link SweepRows} over a pool that the caller ends. */
export function createSweepRows(pool: Pool): SweepRows {
  return {
    filesToEmpty: (limit) => filesToEmpty(pool, limit),
    markEmptied: async (fileIds) => {
      const statement = `update files set bytes_gone_at = ${NOW_SEC} where id = any($1)`;
      await query(pool, statement, [fileIds]);
    },
    removeFiles: (limit) => removeFiles(pool, limit),
    batchesToClear: (page) => endedBatches(pool, page, 'and scratch_gone_at is null'),
    markCleared: async (batchIds) => {
      const statement = 'update batches set scratch_gone_at = now() where id = any($1)';
      await query(pool, statement, [batchIds]);
    },
    batchesToRemove: (page) => endedBatches(pool, page, ''),
    removeBatches: (batchIds) => removeBatches(pool, batchIds),
    forgetPlaces: (limit) => forgetPlaces(pool, limit),
    removeReleasedJobs: (limit) => removeReleasedJobs(pool, limit),
    removeStaleProgress: (limit) => removeStaleProgress(pool, limit),
    uploadsToClear: (limit) => uploadsToClear(pool, limit),
    markUploadsCleared: async (uploadIds) => {
      const statement = `update uploads set parts_gone_at = ${NOW_SEC} where id = any($1)`;
      await query(pool, statement, [uploadIds]);
    },
    removeUploads: (limit) => removeUploads(pool, limit),
    withoutRow: (batchIds) => batchesWithoutRow(pool, batchIds),
    unownedKeys: (keys) => unownedKeys(pool, keys),
    removeIdempotencyKeys: (limit) => removeIdempotencyKeys(pool, limit),
  };
}

/** A delete waits for a concurrent insert of a batch that pins the file, so hidden files get no new pins. */
function filesToEmpty(pool: Pool, limit: number): Promise<FileToEmpty[]> {
  return query<FileToEmpty>(
    pool,
    `select f.id, f.object_key as "objectKey", f.bytes from files f
     where (f.deleted_at is not null or f.expires_at <= ${NOW_SEC} - $1)
       and f.bytes_gone_at is null
       and not exists (
         select 1 from batches b
         where b.input_file_id = f.id and b.input_object_key is not null and b.status = any($2))
       and not exists (
         select 1 from batch_files p join batches b on b.id = p.batch_id
         where p.file_id = f.id and b.status = any($2))
     order by f.seq limit $3`,
    [CLOCK_MARGIN_SEC, OPEN, limit],
  );
}

async function removeFiles(pool: Pool, limit: number): Promise<number> {
  const rows = await query(
    pool,
    `delete from files where id in (
       select id from files
       where (deleted_at is not null or expires_at is not null)
         and bytes_gone_at is not null and least(deleted_at, expires_at) <= ${NOW_SEC} - $1
       order by seq limit $2)
     returning id`,
    [CURSOR_LIFE_SEC + CLOCK_MARGIN_SEC, limit],
  );
  return rows.length;
}

function endedBatches(pool: Pool, page: BatchSweepPage, condition: string) {
  return query<EndedBatchRow>(
    pool,
    `select id, seq, (output_file_id is not null or error_file_id is not null) as "hasFiles"
     from batches
     where status = any($1) and ${ENDED_AT} <= $2 and seq > $3 ${condition}
     order by seq limit $4`,
    [TERMINAL, page.endedBeforeSec, page.afterSeq, page.limit],
  );
}

async function removeBatches(pool: Pool, batchIds: readonly string[]): Promise<void> {
  await query(
    pool,
    `with gone as (
       delete from batches where id = any($1) and status = any($2)
       returning id, tenant, created_at, seq),
     unpinned as (delete from batch_files where batch_id in (select id from gone))
     insert into removed_batches (id, tenant, created_at, seq, removed_at)
     select id, tenant, created_at, seq, ${NOW_SEC} from gone`,
    [batchIds, TERMINAL],
  );
}

async function forgetPlaces(pool: Pool, limit: number): Promise<void> {
  await query(
    pool,
    `delete from removed_batches where id in (
       select id from removed_batches where removed_at <= ${NOW_SEC} - $1
       order by removed_at limit $2)`,
    [CURSOR_LIFE_SEC, limit],
  );
}

async function removeReleasedJobs(pool: Pool, limit: number): Promise<void> {
  await query(
    pool,
    `delete from provider_jobs where id in (
       select j.id from provider_jobs j
       where j.step = 'released' and not exists (select 1 from batches b where b.id = j.batch_id)
       limit $1)`,
    [limit],
  );
}

async function removeStaleProgress(pool: Pool, limit: number): Promise<number> {
  const rows = await query(
    pool,
    `delete from chunk_progress where ctid = any(array(
       select p.ctid from chunk_progress p
       where p.touched_at < now() - $1::interval and not exists (
         select 1 from batches b where b.id = p.batch_id and b.status = any($2))
       limit $3))
     returning batch_id`,
    [STALE_PROGRESS, OPEN, limit],
  );
  return rows.length;
}

function uploadsToClear(pool: Pool, limit: number): Promise<EndedUploadRow[]> {
  return query<EndedUploadRow>(
    pool,
    `select u.id, array(
       select k from unnest(u.joined_keys) as k
       where k is distinct from f.object_key and not exists (
         select 1 from batches b where b.input_object_key = k and b.status = any($3))) as "leftOverKeys"
     from uploads u left join files f on f.id = u.file_id
     where u.parts_gone_at is null and coalesce(u.ended_at, u.expires_at) <= ${NOW_SEC} - $1
     order by u.expires_at limit $2`,
    [UPLOAD_MARGIN_SEC, limit, OPEN],
  );
}

async function removeUploads(pool: Pool, limit: number): Promise<number> {
  const rows = await query(
    pool,
    `delete from uploads where id in (
       select id from uploads
       where parts_gone_at is not null and coalesce(ended_at, expires_at) <= ${NOW_SEC} - $1
       order by expires_at limit $2)
     returning id`,
    [REPEAT_LIFE_SEC, limit],
  );
  return rows.length;
}

async function removeIdempotencyKeys(pool: Pool, limit: number): Promise<number> {
  const rows = await query(
    pool,
    `delete from idempotency_keys where ctid = any(array(
       select ctid from idempotency_keys
       where created_at < now() - make_interval(secs => $1) limit $2))
     returning key`,
    [REPEAT_LIFE_SEC, limit],
  );
  return rows.length;
}
