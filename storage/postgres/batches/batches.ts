import { notifyStop } from '../stop-channel';
import type { Pool, PoolClient } from 'pg';
import type { RequestCounts, Usage } from '../../../core/batch/counts';
import type { BatchStatus, StopCause } from '../../../core/batch/status';
import { legalPredecessors } from '../../../core/batch/status';
import type { SealedHeaders } from '../../../platform/header-vault';
import { BATCH_COLUMNS, type BatchColumns, stepSec, toBatchRecord } from './columns';
import type { Page } from '../files';
import { insertBatchHeaders } from './headers';
import { type IdempotencyKey, type Once, once } from '../idempotency';
import { inTransaction, query } from '../sql';
import { admitBatch, batchRoom, type BatchRoom, type TenantLimits } from '../tenant-limits';

/** A row of `batches` as the API shows it. Times in Unix seconds. */
export interface BatchRecord {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputFileId: string;
  readonly completionWindow: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly model: string | null;
  readonly counts: RequestCounts;
  readonly usage: Usage;
  /** OpenAI's list object, as the end of the batch wrote it. */
  readonly errors: unknown;
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  readonly inProgressAtSec: number | null;
  readonly finalizingAtSec: number | null;
  readonly completedAtSec: number | null;
  readonly failedAtSec: number | null;
  readonly expiredAtSec: number | null;
  readonly cancellingAtSec: number | null;
  readonly cancelledAtSec: number | null;
}

/** A batch to be inserted as `validating`; times in Unix seconds. */
export interface NewBatch {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputFileId: string;
  readonly completionWindow: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Life of the result files, seconds from their creation; null is the configured one. */
  readonly outputExpiresAfterSec: number | null;
  readonly createdAtSec: number;
  readonly expiresAtSec: number;
  /** Headers to be sent with each request; left out where there are none. */
  readonly headers?: SealedHeaders | undefined;
}

export interface BatchQuery {
  readonly tenant: string;
  readonly limit: number;
  /** Id of the batch before the page, exclusive. */
  readonly after?: string;
}

/** What a workflow is started with, for a row whose start has not been seen to work. */
export interface UnstartedBatch {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly inputFileId: string;
  readonly expiresAtSec: number;
}

/** `claimed` is false where the row had a cause already or has ended: then nothing was changed. */
export interface CancelClaim {
  readonly claimed: boolean;
  readonly batch: BatchRecord;
}

/** The API's side of the `batches` rows: it inserts them and claims the cancel, nothing else. */
export interface BatchRepository {
  /**
   * Inserts a batch that is `validating`. Its input is pinned in the same statement: where the file
   * is visible to the tenant now, its object and size are noted, and a later delete changes nothing.
   */
  insert(batch: NewBatch): Promise<BatchRecord>;
  /** Inserts the batch of a request that may be sent again. */
  insertOnce(batch: NewBatch, key: IdempotencyKey): Promise<Once<BatchRecord>>;
  get(id: string, tenant: string): Promise<BatchRecord | null>;
  /** How many more batches the tenant may have open; null where that is without limit. */
  room(tenant: string): Promise<BatchRoom | null>;
  /**
   * Newest first. Null where `after` names no batch of the tenant; one that retention has removed
   * keeps its place for a day (contract §7.1).
   */
  list(page: BatchQuery): Promise<Page<BatchRecord> | null>;
  /** Claims `cancelled` as the first cause of the end (execution §4). Null where there is no such batch. */
  claimCancel(id: string, tenant: string, nowSec: number): Promise<CancelClaim | null>;
  /** Whether the workflow has still to hear of a cancel that was claimed. */
  awaitsCancelSignal(id: string): Promise<boolean>;
  markStarted(id: string): Promise<void>;
  /** Open batches older than `createdBeforeSec` whose start has not been seen to work, oldest first. */
  unstarted(createdBeforeSec: number, limit: number): Promise<UnstartedBatch[]>;
}

const CANCELLABLE = legalPredecessors('cancelling');

/**
 * {@link BatchRepository} over a pool that the caller ends. All methods: @throws postgres_unavailable;
 * inserting: @throws rate_limited
 */
export function createBatchRepository(pool: Pool, limits: TenantLimits = {}): BatchRepository {
  const insert = async (client: PoolClient, batch: NewBatch): Promise<BatchRecord> => {
    await admitBatch(client, batch.tenant, limits);
    return insertBatch(client, batch);
  };
  return {
    insert: (batch) => inTransaction(pool, (client) => insert(client, batch)),
    insertOnce: (batch, key) =>
      once(pool, { key, objectId: batch.id }, (client) => insert(client, batch)),
    get: (id, tenant) => getBatch(pool, id, tenant),
    room: (tenant) => batchRoom(pool, tenant, limits),
    list: (page) => listBatches(pool, page),
    claimCancel: (id, tenant, nowSec) => claimCancel(pool, { id, tenant, nowSec }),
    awaitsCancelSignal: (id) => awaitsCancelSignal(pool, id),
    markStarted: (id) => markStarted(pool, id),
    unstarted: (createdBeforeSec, limit) => unstarted(pool, createdBeforeSec, limit),
  };
}

async function insertBatch(client: PoolClient, batch: NewBatch): Promise<BatchRecord> {
  const values = [
    batch.id,
    batch.tenant,
    batch.endpoint,
    batch.inputFileId,
    batch.completionWindow,
    batch.metadata === null ? null : JSON.stringify(batch.metadata),
    batch.outputExpiresAfterSec,
    batch.createdAtSec,
    batch.expiresAtSec,
    batch.headers !== undefined,
  ];
  // The lock keeps a sweep from removing the bytes between this look and the new row.
  const [row] = await query<BatchColumns>(
    client,
    `with input as (
       select object_key, bytes from files
       where id = $4 and tenant = $2 and purpose = 'batch' and deleted_at is null
         and (expires_at is null or expires_at > $8)
       for share)
     insert into batches
       (id, tenant, endpoint, input_file_id, completion_window, metadata, output_expires_after,
        created_at, expires_at, passes_headers, input_object_key, input_bytes)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
       (select object_key from input), (select bytes from input))
     returning ${BATCH_COLUMNS}`,
    values,
  );
  if (batch.headers !== undefined) await insertBatchHeaders(client, batch.id, batch.headers);
  return toBatchRecord(row);
}

async function getBatch(pool: Pool, id: string, tenant: string): Promise<BatchRecord | null> {
  const [row] = await query<BatchColumns>(
    pool,
    `select ${BATCH_COLUMNS} from batches where id = $1 and tenant = $2`,
    [id, tenant],
  );
  return row === undefined ? null : toBatchRecord(row);
}

async function listBatches(
  pool: Pool,
  { tenant, limit, after }: BatchQuery,
): Promise<Page<BatchRecord> | null> {
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
  return { data: rows.slice(0, limit).map(toBatchRecord), hasMore: rows.length > limit };
}

async function findCursor(
  pool: Pool,
  tenant: string,
  after: string,
): Promise<{ createdAtSec: number; seq: number } | null> {
  const [row] = await query<{ createdAtSec: number; seq: number }>(
    pool,
    `select created_at as "createdAtSec", seq from batches where id = $1 and tenant = $2
     union all
     select created_at, seq from removed_batches where id = $1 and tenant = $2`,
    [after, tenant],
  );
  return row ?? null;
}

async function claimCancel(
  pool: Pool,
  { id, tenant, nowSec }: { id: string; tenant: string; nowSec: number },
): Promise<CancelClaim | null> {
  const [claimed] = await query<BatchColumns>(
    pool,
    `update batches set stop_cause = 'cancelled', status = 'cancelling',
       cancelling_at = ${stepSec('$3::bigint')}, updated_at = now()
     where id = $1 and tenant = $2 and stop_cause is null and status = any($4)
     returning ${BATCH_COLUMNS}, ${notifyStop('id')}`,
    [id, tenant, nowSec, CANCELLABLE],
  );
  if (claimed !== undefined) return { claimed: true, batch: toBatchRecord(claimed) };
  // A statement of its own: it sees what the one that came first has written.
  const batch = await getBatch(pool, id, tenant);
  return batch === null ? null : { claimed: false, batch };
}

async function awaitsCancelSignal(pool: Pool, id: string): Promise<boolean> {
  const rows = await query(
    pool,
    `select 1 from batches where id = $1 and status = 'cancelling' and stop_taken_at is null`,
    [id],
  );
  return rows.length > 0;
}

async function markStarted(pool: Pool, id: string): Promise<void> {
  await query(
    pool,
    `update batches set workflow_started_at = now() where id = $1 and workflow_started_at is null`,
    [id],
  );
}

function unstarted(pool: Pool, createdBeforeSec: number, limit: number): Promise<UnstartedBatch[]> {
  return query<UnstartedBatch>(
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
