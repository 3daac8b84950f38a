import type { Pool, PoolClient, QueryResultRow } from 'pg';
import type { TriedRow } from '../../core/batch/last-resort';
import type { OrphanRow } from '../../core/batch/orphans';
import type { BatchStatus, StopCause, TerminalStatus } from '../../core/batch/status';
import { isTerminal, OPEN_STATUSES } from '../../core/batch/status';
import { NightshiftError } from '../../core/errors';
import { insertResultFile, resultValues, SET_RESULT } from './batches/end';
import type { BatchRecordsOptions, TerminalRecord } from './batches/records';
import type { UnstartedBatch } from './batches/batches';
import { createBatchRepository } from './batches/batches';
import { createReconcileTries, type ReconcileTries } from './reconcile-tries';
import { inTransaction, query } from './sql';

/** What reconcile reads and writes of `batches`. All methods: @throws postgres_unavailable */
export interface ReconcileRows extends ReconcileTries {
  /** Open batches behind `afterSeq`, in order of insertion. */
  openPage(page: { afterSeq: number; limit: number }): Promise<ReconcileRow[]>;
  /** One batch as it stands now; null where it is gone or has ended. */
  open(batchId: string): Promise<ReconcileRow | null>;
  markStarted(batchId: string): Promise<void>;
  /** Open batches that were started once, as a worker finds them when it starts. */
  foundAtStart(worker: string): Promise<FoundBatch[]>;
  /** Those of them that a holder of then has touched within the last two seconds: it lives. */
  stillHeld(batches: readonly FoundBatch[]): Promise<Set<string>>;
  /** How a batch stands whose files may have to be delivered late; null where there is none. */
  ended(batchId: string): Promise<EndedBatch | null>;
  /**
   * Files, counts and usage of a batch that ended without them: its status stays. A batch that has
   * files keeps those. @throws conflict where the batch has not ended, not_found
   */
  recordLate(record: TerminalRecord): Promise<TerminalStatus>;
}

/** An open batch: what decides about it, and what its workflow is started with. */
export interface ReconcileRow extends OrphanRow, TriedRow, UnstartedBatch {
  /** Place in the order of insertion: the cursor of pages. */
  readonly seq: number;
  readonly status: BatchStatus;
  /** For how long reconcile has seen it past its deadline and grace. */
  readonly overdueMs: number;
  /** When the start of its workflow was first seen to work. */
  readonly startedAtSec: number | null;
}

/** An open batch, and the other workers that may be at it. */
export interface FoundBatch {
  readonly id: string;
  readonly status: BatchStatus;
  /** Names of those that touched a chunk of it within the last five seconds; the asker is none. */
  readonly holders: readonly string[];
}

/** The end of a batch as its row has it. */
export interface EndedBatch {
  readonly status: BatchStatus;
  readonly stopCause: StopCause | null;
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
}

/** A chunk that was not heard of for so long has no worker (execution §4). */
const UNTOUCHED_SEC = 5;
/** Who lives touches its chunks every second. */
const JUST_TOUCHED_SEC = 2;

const COLUMNS = `seq, id, tenant, endpoint, input_file_id as "inputFileId", status,
  stop_cause as "stopCause", stop_taken_at is not null as "stopTaken",
  workflow_started_at is not null as "startSeen", created_at as "createdAtSec",
  expires_at as "expiresAtSec", cancelling_at as "cancellingAtSec",
  floor(extract(epoch from workflow_started_at))::bigint as "startedAtSec", restarts, overdue_ms as "overdueMs",
  floor(extract(epoch from restarted_at))::bigint as "restartedAtSec"`;

/** {@link ReconcileRows} over a pool that the caller ends. */
export function createReconcileRows(pool: Pool, options: BatchRecordsOptions): ReconcileRows {
  return {
    ...createReconcileTries(pool),
    openPage: ({ afterSeq, limit }) =>
      query<ReconcileRow>(
        pool,
        `select ${COLUMNS} from batches where status = any($1) and seq > $2 order by seq limit $3`,
        [[...OPEN_STATUSES], afterSeq, limit],
      ),
    open: async (batchId) => {
      const [row] = await query<ReconcileRow>(
        pool,
        `select ${COLUMNS} from batches where id = $1 and status = any($2)`,
        [batchId, [...OPEN_STATUSES]],
      );
      return row ?? null;
    },
    markStarted: (batchId) => createBatchRepository(pool).markStarted(batchId),
    foundAtStart: (worker) => foundAtStart(pool, worker),
    stillHeld: (batches) => stillHeld(pool, batches),
    ended: (batchId) => ended(pool, batchId, ''),
    recordLate: (record) => inTransaction(pool, (client) => recordLate(client, record, options)),
  };
}

function foundAtStart(pool: Pool, worker: string): Promise<FoundBatch[]> {
  return query<FoundBatch & QueryResultRow>(
    pool,
    `select b.id, b.status, array(
       select distinct p.worker from chunk_progress p
       where p.batch_id = b.id and not p.released and p.worker <> $2
         and p.touched_at > now() - make_interval(secs => $3)) as holders
     from batches b
     where b.status = any($1) and b.workflow_started_at is not null`,
    [[...OPEN_STATUSES], worker, UNTOUCHED_SEC],
  );
}

async function stillHeld(pool: Pool, batches: readonly FoundBatch[]): Promise<Set<string>> {
  const pairs = batches.flatMap(({ id, holders }) =>
    holders.map((holder) => [id, holder] as const),
  );
  const rows = await query<{ id: string }>(
    pool,
    `select distinct p.batch_id as id from chunk_progress p
     join unnest($1::text[], $2::text[]) as h (id, holder)
       on h.id = p.batch_id and h.holder = p.worker
     where p.touched_at > now() - make_interval(secs => $3)`,
    [pairs.map(([id]) => id), pairs.map(([, holder]) => holder), JUST_TOUCHED_SEC],
  );
  return new Set(rows.map(({ id }) => id));
}

interface EndedRow extends EndedBatch {
  readonly tenant: string;
  readonly outputExpiresAfterSec: number | null;
}

async function ended(
  database: Pool | PoolClient,
  batchId: string,
  lock: '' | 'for update',
): Promise<EndedRow | null> {
  const [row] = await query<EndedRow>(
    database,
    `select status, stop_cause as "stopCause", output_file_id as "outputFileId",
       error_file_id as "errorFileId", tenant, output_expires_after as "outputExpiresAfterSec"
     from batches where id = $1 ${lock}`,
    [batchId],
  );
  return row ?? null;
}

async function recordLate(
  client: PoolClient,
  record: TerminalRecord,
  options: BatchRecordsOptions,
): Promise<TerminalStatus> {
  const { batchId, outputFile, errorFile } = record;
  const row = await ended(client, batchId, 'for update');
  if (row === null) throw new NightshiftError('not_found', `there is no batch ${batchId}`);
  if (!isTerminal(row.status)) {
    throw new NightshiftError('conflict', `${batchId} is ${row.status}: its workflow delivers it`);
  }
  if (row.outputFileId !== null || row.errorFileId !== null) return row.status;
  for (const file of [outputFile, errorFile]) {
    if (file !== null) await insertResultFile(client, { record, row, file, options });
  }
  await query(client, `update batches set ${SET_RESULT} where id = $1`, resultValues(record));
  return row.status;
}
