import type { Pool } from 'pg';
import { OPEN_STATUSES, TERMINAL_STATUSES } from '../../core/batch/status';
import { unownedKeys } from './object-owners';
import { query } from './sql';

/**
 * What the sweep reads and writes of the read model. Rows tell which objects may go and, once those
 * are gone, go themselves: a sweep that dies in between is taken up by the next one. All methods:
 * @throws postgres_unavailable
 */
export interface SweepRows {
  /** Files that nobody can see any more, with bytes that no open batch needs. */
  filesToEmpty(limit: number): Promise<{ id: string; objectKey: string }[]>;
  /** Their bytes are gone. */
  markEmptied(fileIds: readonly string[]): Promise<void>;
  /** Removes rows of files whose bytes are gone and that no cursor can name any more; how many. */
  removeFiles(limit: number): Promise<number>;
  /** Batches that ended before `endedBeforeSec` (Unix) and have scratch, behind `afterSeq`. */
  batchesToClear(page: BatchSweepPage): Promise<EndedBatchRow[]>;
  /** Their plans, journals and seals are gone. */
  markCleared(batchIds: readonly string[]): Promise<void>;
  /** Batches that ended before `endedBeforeSec` (Unix), behind `afterSeq`. */
  batchesToRemove(page: BatchSweepPage): Promise<EndedBatchRow[]>;
  /** Removes rows of ended batches; lists still know their places. */
  removeBatches(batchIds: readonly string[]): Promise<void>;
  /** Removes the places of batches that were removed a day ago. */
  forgetPlaces(limit: number): Promise<void>;
  /** Removes progress of chunks whose batch has ended or is gone; how many. */
  removeStaleProgress(limit: number): Promise<number>;
  /** Uploads that ended an hour ago, with objects that nobody needs any more. */
  uploadsToClear(limit: number): Promise<EndedUploadRow[]>;
  /** Their objects are gone. */
  markUploadsCleared(uploadIds: readonly string[]): Promise<void>;
  /** Removes rows of uploads that ended a day ago, those of their parts included; how many. */
  removeUploads(limit: number): Promise<number>;
  /** Of these keys of objects those that belong to nobody. */
  unownedKeys(keys: readonly string[]): Promise<string[]>;
  /** Removes keys of requests that were made more than a day ago; how many. */
  removeIdempotencyKeys(limit: number): Promise<number>;
}

/** One page in order of insertion. */
export interface BatchSweepPage {
  readonly endedBeforeSec: number;
  readonly afterSeq: number;
  readonly limit: number;
}

/** A batch that has ended; `hasFiles`: its results were delivered. */
export interface EndedBatchRow {
  readonly id: string;
  readonly seq: number;
  readonly hasFiles: boolean;
}

/** An upload that has ended; its parts lie under its prefix. */
export interface EndedUploadRow {
  readonly id: string;
  /** Objects of completions that came to nothing. */
  readonly leftOverKeys: readonly string[];
}

/**
 * Clocks differ: a batch created by another process may just have pinned a file that it took for
 * alive. What is hidden for this long is hidden for everybody.
 */
const CLOCK_MARGIN_SEC = 300;
/** As long as lists know what was hidden or removed as a cursor (contract §7.1). */
const CURSOR_LIFE_SEC = 24 * 3600;
/** A part or a completion that was under way at the end is over after this. */
const UPLOAD_MARGIN_SEC = 3600;
/** As long as a repeated completion gets its answer, and a repeated key its object (contract §7.1). */
const REPEAT_LIFE_SEC = 24 * 3600;
/** A chunk that outlives its batch needs its row to learn of it. */
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
    removeStaleProgress: (limit) => removeStaleProgress(pool, limit),
    uploadsToClear: (limit) => uploadsToClear(pool, limit),
    markUploadsCleared: async (uploadIds) => {
      const statement = `update uploads set parts_gone_at = ${NOW_SEC} where id = any($1)`;
      await query(pool, statement, [uploadIds]);
    },
    removeUploads: (limit) => removeUploads(pool, limit),
    unownedKeys: (keys) => unownedKeys(pool, keys),
    removeIdempotencyKeys: (limit) => removeIdempotencyKeys(pool, limit),
  };
}

/** A delete waits for the creation of a batch that pins the file, so what is hidden gets no new pins. */
function filesToEmpty(pool: Pool, limit: number): Promise<{ id: string; objectKey: string }[]> {
  return query<{ id: string; objectKey: string }>(
    pool,
    `select f.id, f.object_key as "objectKey" from files f
     where (f.deleted_at is not null or f.expires_at <= ${NOW_SEC} - $1)
       and f.bytes_gone_at is null
       and not exists (
         select 1 from batches b
         where b.input_file_id = f.id and b.input_object_key is not null and b.status = any($2))
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
       returning id, tenant, created_at, seq)
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
    `select u.id, array_remove(u.joined_keys, f.object_key) as "leftOverKeys"
     from uploads u left join files f on f.id = u.file_id
     where u.parts_gone_at is null and coalesce(u.ended_at, u.expires_at) <= ${NOW_SEC} - $1
     order by u.expires_at limit $2`,
    [UPLOAD_MARGIN_SEC, limit],
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
