import type { Pool } from 'pg';
import type { BatchStatus, StopCause } from '../../core/batch/status';
import { OPEN_STATUSES } from '../../core/batch/status';
import type { Database } from './sql';

/** The statements of progress and fencing on `chunk_progress` (docs/design/read-model.md#progress). */

/** Identifies a chunk: the rows of its attempts. */
export interface ChunkKey {
  readonly batchId: string;
  readonly safeModel: string;
  readonly from: number;
}

/** A chunk's progress as its holder reports it: counts over `[from, to)`, no increments. */
export interface ProgressRow extends ChunkKey {
  readonly to: number;
  readonly epoch: number;
  readonly completed: number;
  readonly failed: number;
  readonly released: boolean;
}

/** The database's answer about one row: whether we still hold it, and the state of its batch. */
export interface ProgressVerdict extends ChunkKey {
  readonly held: boolean;
  readonly status: BatchStatus | null;
  readonly stopCause: StopCause | null;
}

/** The epoch that an attempt has taken, and an earlier holder that it may have to wait for. */
export interface TakenEpoch {
  /** Null if the attempt yielded to a holder at work. */
  readonly epoch: number | null;
  /** How long ago an earlier holder that has not released touched its row, ms; null if there is none. */
  readonly earlierTouchedMsAgo: number | null;
  /** State of its batch, so that a chunk of a stopped batch sends nothing. */
  readonly status: BatchStatus | null;
  readonly stopCause: StopCause | null;
}

/** A holder that touched its row within this time may still be at work. */
export const AT_WORK_MS = 3_000;

/**
 * Takes the next epoch into the chunk's row and removes rows with older epochs that begin inside its
 * range. With `yielding`, nothing changes if a holder may be at work there.
 */
export async function takeEpoch(
  pool: Pool,
  key: ChunkKey & { to: number; worker: string; yielding: boolean },
): Promise<TakenEpoch> {
  const { rows } = await pool.query<{
    epoch: string | null;
    ago_ms: string | null;
    status: BatchStatus | null;
    stop_cause: StopCause | null;
  }>(
    `with earlier as (
       select min(extract(epoch from now() - touched_at) * 1000) as ago_ms from chunk_progress
       where batch_id = $1 and safe_model = $2 and from_pos >= $3 and from_pos < $4 and not released),
     mine as (
       select nextval('chunk_epoch') as epoch from earlier
       where not $6 or ago_ms is null or ago_ms >= $7),
     gone as (
       delete from chunk_progress where batch_id = $1 and safe_model = $2
         and from_pos > $3 and from_pos < $4 and epoch < (select epoch from mine)),
     taken as (
       insert into chunk_progress as p (batch_id, safe_model, from_pos, to_pos, epoch, worker)
       select $1, $2, $3, $4, epoch, $5 from mine
       on conflict (batch_id, safe_model, from_pos) do update
         set epoch = excluded.epoch, to_pos = excluded.to_pos, worker = excluded.worker,
             touched_at = now(), released = false
         where p.epoch < excluded.epoch)
     select mine.epoch, earlier.ago_ms, b.status, b.stop_cause
     from earlier left join mine on true left join batches b on b.id = $1`,
    [key.batchId, key.safeModel, key.from, key.to, key.worker, key.yielding, AT_WORK_MS],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('the statement returned no epoch');
  return {
    epoch: row.epoch === null ? null : Number(row.epoch),
    earlierTouchedMsAgo: row.ago_ms === null ? null : Number(row.ago_ms),
    status: row.status,
    stopCause: row.stop_cause,
  };
}

/**
 * Writes the state of every chunk of this worker in one statement. Rows must be sorted by key, each key
 * once, so that two workers never deadlock.
 */
export async function touchRows(
  pool: Pool,
  rows: readonly ProgressRow[],
): Promise<ProgressVerdict[]> {
  const answered = await pool.query<Record<string, unknown>>(
    `with mine as (
       select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[])
         as t (batch_id, safe_model, from_pos, to_pos, epoch, completed, failed, released)),
     touched as (
       update chunk_progress p set to_pos = m.to_pos, completed = m.completed, failed = m.failed,
         released = m.released, touched_at = now()
       from mine m
       where p.batch_id = m.batch_id and p.safe_model = m.safe_model and p.from_pos = m.from_pos and p.epoch = m.epoch
       returning p.batch_id, p.safe_model, p.from_pos)
     select m.batch_id, m.safe_model, m.from_pos, t.batch_id is not null as held, b.status, b.stop_cause
     from mine m
     left join touched t on t.batch_id = m.batch_id and t.safe_model = m.safe_model and t.from_pos = m.from_pos
     left join batches b on b.id = m.batch_id`,
    [
      rows.map((row) => row.batchId),
      rows.map((row) => row.safeModel),
      rows.map((row) => row.from),
      rows.map((row) => row.to),
      rows.map((row) => row.epoch),
      rows.map((row) => row.completed),
      rows.map((row) => row.failed),
      rows.map((row) => row.released),
    ],
  );
  return answered.rows.map((row) => ({
    batchId: String(row['batch_id']),
    safeModel: String(row['safe_model']),
    from: Number(row['from_pos']),
    held: row['held'] === true,
    status: row['status'] as BatchStatus | null,
    stopCause: row['stop_cause'] as StopCause | null,
  }));
}

/**
 * Raises the counts in `batches` to the sums of progress, and of the lines that providers count as completed in jobs
 * that run. They only grow and never exceed the total (docs/design/read-model.md#counts-while-running).
 */
export async function showCounts(database: Database, batchIds: readonly string[]): Promise<void> {
  await database.query(
    `with locked as (
       select id from batches where id = any($1) and status = any($2) order by id for no key update),
     parts as (
       select batch_id, completed, failed from chunk_progress
       where batch_id in (select id from locked)
       union all
       select batch_id, least(completed, lines), 0 from provider_jobs
       where batch_id in (select id from locked) and step = 'submitted' and completed > 0),
     sums as (
       select batch_id, sum(completed) as completed, sum(failed) as failed from parts group by batch_id)
     update batches b set
       completed = greatest(b.completed, least(s.completed, b.total - b.failed)),
       failed = greatest(b.failed, least(s.failed, b.total - greatest(b.completed, least(s.completed, b.total - b.failed)))),
       updated_at = now()
     from sums s
     where b.id = s.batch_id and (s.completed > b.completed or s.failed > b.failed)`,
    [[...batchIds].sort(), [...OPEN_STATUSES]],
  );
}

/** The number of unreleased chunks of a batch, and the time since one of them last touched its row, ms. */
export async function unreleased(
  pool: Pool,
  batchId: string,
): Promise<{ rows: number; touchedMsAgo: number }> {
  const { rows } = await pool.query<{ n: string; ago_ms: string | null }>(
    `select count(*) as n, min(extract(epoch from now() - touched_at) * 1000) as ago_ms
     from chunk_progress where batch_id = $1 and not released`,
    [batchId],
  );
  return { rows: Number(rows[0]?.n ?? 0), touchedMsAgo: Number(rows[0]?.ago_ms ?? Infinity) };
}
