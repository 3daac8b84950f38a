import type { Pool, PoolClient } from 'pg';
import { OPEN_STATUSES } from '../../../core/batch/status';
import type { ListCursor, Page } from '../list-page';
import { toPage } from '../list-page';
import { type Database, query } from '../sql';
import { BATCH_COLUMNS, type BatchColumns, OPEN_BATCH_COLUMNS, toBatchRow } from './columns';
import type { BatchQuery, BatchRow, BatchState, BatchToStart, OpenBatch } from './types';

/** A batch of the tenant; null if there is none. @throws postgres_unavailable */
export async function getBatch(pool: Pool, id: string, tenant: string): Promise<BatchRow | null> {
  return selectBatch(pool, 'id = $1 and tenant = $2', [id, tenant]);
}

/** A batch of any tenant; null if there is none. @throws postgres_unavailable */
export async function findBatch(database: Database, id: string): Promise<BatchRow | null> {
  return selectBatch(database, 'id = $1', [id]);
}

/** {@link findBatch} that locks the row until the transaction ends. @throws postgres_unavailable */
export async function lockBatch(client: PoolClient, id: string): Promise<BatchRow | null> {
  return selectBatch(client, 'id = $1 for update', [id]);
}

async function selectBatch(
  database: Database,
  condition: string,
  values: readonly unknown[],
): Promise<BatchRow | null> {
  const text = `select ${BATCH_COLUMNS} from batches where ${condition}`;
  const [row] = await query<BatchColumns>(database, text, values);
  return row === undefined ? null : toBatchRow(row);
}

/**
 * Newest first. Null if `after` names no batch of the tenant. A batch that retention has removed stays
 * valid as `after` for a day. @throws postgres_unavailable
 */
export async function listBatches(
  pool: Pool,
  { tenant, limit, after }: BatchQuery,
): Promise<Page<BatchRow> | null> {
  const cursor = after === undefined ? null : await findCursor(pool, tenant, after);
  if (after !== undefined && cursor === null) return null;
  const rows = await query<BatchColumns>(
    pool,
    `select ${BATCH_COLUMNS} from batches
     where tenant = $1
       and ($2::bigint is null or (created_at, seq) < ($2::bigint, $3::bigint))
     order by created_at desc, seq desc
     limit $4`,
    [tenant, cursor?.createdAtSec ?? null, cursor?.seq ?? null, limit + 1],
  );
  return toPage(rows.map(toBatchRow), limit);
}

async function findCursor(pool: Pool, tenant: string, after: string): Promise<ListCursor | null> {
  const [row] = await query<ListCursor>(
    pool,
    `select created_at as "createdAtSec", seq from batches where id = $1 and tenant = $2
     union all
     select created_at, seq from removed_batches where id = $1 and tenant = $2`,
    [after, tenant],
  );
  return row ?? null;
}

/** Current status and cause. @throws postgres_unavailable */
export async function readState(database: Database, batchId: string): Promise<BatchState> {
  const text = `select status, stop_cause as "stopCause" from batches where id = $1`;
  const [row] = await query<Omit<BatchState, 'found'>>(database, text, [batchId]);
  return row === undefined
    ? { found: false, status: 'validating', stopCause: null }
    : { found: true, ...row };
}

/** Whether a cancel was claimed that the workflow has not received yet. @throws postgres_unavailable */
export async function awaitsCancelSignal(pool: Pool, id: string): Promise<boolean> {
  const rows = await query(
    pool,
    `select 1 from batches where id = $1 and status = 'cancelling' and stop_taken_at is null`,
    [id],
  );
  return rows.length > 0;
}

/**
 * Open batches created before `createdBeforeSec` that are not known to have started, oldest first.
 * @throws postgres_unavailable
 */
export function unstartedBatches(
  pool: Pool,
  createdBeforeSec: number,
  limit: number,
): Promise<BatchToStart[]> {
  return query<BatchToStart>(
    pool,
    `select id, tenant, endpoint, input_file_id as "inputFileId", expires_at as "expiresAtSec"
     from batches
     where workflow_started_at is null and created_at < $1
       and status in ('validating', 'in_progress', 'finalizing', 'cancelling')
     order by created_at
     limit $2`,
    [createdBeforeSec, limit],
  );
}

/** Open batches after `afterSeq`, in order of insertion. @throws postgres_unavailable */
export function pageOfOpenBatches(
  pool: Pool,
  { afterSeq, limit }: { readonly afterSeq: number; readonly limit: number },
): Promise<OpenBatch[]> {
  return query<OpenBatch>(
    pool,
    `select ${OPEN_BATCH_COLUMNS} from batches
     where status = any($1) and seq > $2 order by seq limit $3`,
    [[...OPEN_STATUSES], afterSeq, limit],
  );
}

/** One open batch; null if there is none or it has ended. @throws postgres_unavailable */
export async function findOpenBatch(pool: Pool, batchId: string): Promise<OpenBatch | null> {
  const [row] = await query<OpenBatch>(
    pool,
    `select ${OPEN_BATCH_COLUMNS} from batches where id = $1 and status = any($2)`,
    [batchId, [...OPEN_STATUSES]],
  );
  return row ?? null;
}
