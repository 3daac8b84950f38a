import type { Pool } from 'pg';
import type { StopCause, TerminalStatus } from '../../../core/batch/status';
import type { IdempotencyKey, Once } from '../idempotency';
import type { Page } from '../list-page';
import { inTransaction } from '../sql';
import { type BatchQuota, batchQuota, type TenantLimits } from '../tenant-limits';
import { claimCancel, claimCause } from './claim-cause';
import { insertBatch, insertBatchOnce } from './create';
import { recordEnd, recordLateDelivery, recordUnfinalized } from './end';
import { startedBatches, stillHeld } from './holders';
import { markStarted, recordPhase } from './phases';
import {
  awaitsCancelSignal,
  findBatch,
  findOpenBatch,
  getBatch,
  listBatches,
  pageOfOpenBatches,
  unstartedBatches,
} from './read';
import { addOverdue, noteRestart, resetOverdue } from './reconcile-attempts';
import type {
  BatchQuery,
  BatchRow,
  BatchState,
  BatchToStart,
  CancelClaim,
  HeldBatch,
  NewBatch,
  OpenBatch,
  PhaseUpdate,
  TerminalRecord,
} from './types';

/**
 * The rows of `batches`. The API inserts them, reads them and claims cancels; the steps of the workflow
 * write everything else, always guarded by the table of legal transitions; reconcile reads the open
 * ones. Each takes the methods that it needs. All methods: @throws postgres_unavailable
 * (docs/design/read-model.md#columns-and-writers)
 */
export interface BatchRepository {
  /** Inserts a batch that is `validating` and pins its input file. @throws rate_limited */
  insert(batch: NewBatch): Promise<BatchRow>;
  /** {@link BatchRepository.insert} for a request with an idempotency key. @throws rate_limited */
  insertOnce(batch: NewBatch, key: IdempotencyKey): Promise<Once<BatchRow>>;
  /** How many batches the tenant may have open, and how many more; null without a limit. */
  quota(tenant: string): Promise<BatchQuota | null>;

  /** A batch of the tenant; null if there is none. */
  get(id: string, tenant: string): Promise<BatchRow | null>;
  /**
   * Newest first. Null if `after` names no batch of the tenant; a batch that retention has removed
   * keeps its place for a day.
   */
  list(page: BatchQuery): Promise<Page<BatchRow> | null>;
  /** A batch of any tenant, for its workflow; null if there is none. */
  find(batchId: string): Promise<BatchRow | null>;

  /** The API's claim of the cause `cancelled`. Null if the tenant has no such batch. */
  claimCancel(id: string, tenant: string, nowSec: number): Promise<CancelClaim | null>;
  /** The workflow's claim; returns the cause that the row has afterwards. */
  claimCause(batchId: string, cause: StopCause): Promise<BatchState>;
  /** Whether the workflow has not yet noted a cancel that was claimed. */
  awaitsCancelSignal(id: string): Promise<boolean>;

  /** Open batches created before `createdBeforeSec` whose start was never seen to work, oldest first. */
  unstarted(createdBeforeSec: number, limit: number): Promise<BatchToStart[]>;
  markStarted(id: string): Promise<void>;
  /** Phase, total and models; the phase is left if the transition is illegal or a cause is claimed. */
  recordPhase(batchId: string, phase: PhaseUpdate): Promise<BatchState>;

  /** File rows and terminal status in one transaction; the row decides which. @throws not_found */
  recordEnd(record: TerminalRecord): Promise<TerminalStatus>;
  /** The end of a batch whose files could not be made: the counts that progress has shown. */
  recordUnfinalized(batchId: string, cause: StopCause | null): Promise<BatchState>;
  /** Files of a batch that ended without them; its status stays. @throws not_found, conflict */
  recordLateDelivery(record: TerminalRecord): Promise<TerminalStatus>;

  /** Open batches behind `afterSeq`, in order of insertion. */
  openPage(page: { afterSeq: number; limit: number }): Promise<OpenBatch[]>;
  /** One open batch; null if there is none or it has ended. */
  findOpen(batchId: string): Promise<OpenBatch | null>;
  /** Counts a restart of a closed workflow. */
  noteRestart(batchId: string): Promise<void>;
  /** Adds the time since the last look to each open batch; returns the sums, ms by id. */
  addOverdue(batchIds: readonly string[]): Promise<Map<string, number>>;
  resetOverdue(batchId: string): Promise<void>;

  /** Open batches that were started once, with the workers other than `worker` that may hold them. */
  started(worker: string): Promise<HeldBatch[]>;
  /** Ids of those batches whose holders were seen within the last two seconds. */
  stillHeld(batches: readonly HeldBatch[]): Promise<Set<string>>;
}

export interface BatchRepositoryOptions {
  /** What a tenant may have. */
  readonly limits?: TenantLimits;
  /** Life of result files whose batch names none, seconds; they never expire if it is left out. */
  readonly outputFilesSec?: number;
}

/** {@link BatchRepository} over a pool that the caller ends. */
export function createBatchRepository(
  pool: Pool,
  { limits = {}, outputFilesSec }: BatchRepositoryOptions = {},
): BatchRepository {
  const lifeSec = outputFilesSec ?? null;
  return {
    insert: (batch) => insertBatch(pool, batch, limits),
    insertOnce: (batch, key) => insertBatchOnce(pool, { batch, key }, limits),
    quota: (tenant) => batchQuota(pool, tenant, limits),
    get: (id, tenant) => getBatch(pool, id, tenant),
    list: (page) => listBatches(pool, page),
    find: (batchId) => findBatch(pool, batchId),
    claimCancel: (id, tenant, nowSec) => claimCancel(pool, { id, tenant, nowSec }),
    claimCause: (batchId, cause) => claimCause(pool, batchId, cause),
    awaitsCancelSignal: (id) => awaitsCancelSignal(pool, id),
    unstarted: (createdBeforeSec, limit) => unstartedBatches(pool, createdBeforeSec, limit),
    markStarted: (id) => markStarted(pool, id),
    recordPhase: (batchId, phase) => recordPhase(pool, batchId, phase),
    recordEnd: (record) => inTransaction(pool, (client) => recordEnd(client, record, lifeSec)),
    recordUnfinalized: (batchId, cause) =>
      inTransaction(pool, (client) => recordUnfinalized(client, batchId, cause)),
    recordLateDelivery: (record) =>
      inTransaction(pool, (client) => recordLateDelivery(client, record, lifeSec)),
    openPage: (page) => pageOfOpenBatches(pool, page),
    findOpen: (batchId) => findOpenBatch(pool, batchId),
    noteRestart: (batchId) => noteRestart(pool, batchId),
    addOverdue: (batchIds) => addOverdue(pool, batchIds),
    resetOverdue: (batchId) => resetOverdue(pool, batchId),
    started: (worker) => startedBatches(pool, worker),
    stillHeld: (batches) => stillHeld(pool, batches),
  };
}
