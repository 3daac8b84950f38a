import type { Pool, PoolClient } from 'pg';
import type { StopCause, TerminalStatus } from '../../../core/batch/status';
import type { IdempotencyKey, Once } from '../idempotency';
import type { Page } from '../list-page';
import { inTransaction } from '../sql';
import { type BatchQuota, batchQuota, type TenantLimits } from '../tenant-limits';
import { claimCancel, claimCause } from './claim-cause';
import { insertBatch, insertBatchOnce } from './create';
import { type Ending, recordEnd, recordLateDelivery, recordUnfinalized } from './end';
import { heldBatches, liveWorkers, type StartedWorker } from './holders';
import { beginStep, type MeasuredStep, noteFirstRequest } from './measured-times';
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
import { type PinnedFile, pinFiles } from './pin-files';
import { addOverdue, noteRestart, resetOverdue } from './reconcile-attempts';
import type {
  BatchQuery,
  BatchRow,
  BatchState,
  BatchToStart,
  CancelClaim,
  EndedBatch,
  HeldBatch,
  NewBatch,
  OpenBatch,
  PhaseUpdate,
  TerminalRecord,
} from './types';

/**
 * The rows of `batches`. The API inserts them, reads them and claims cancels. The workflow's activities
 * write everything else, guarded by the table of legal transitions. Reconcile reads the open rows. Each
 * caller picks the methods that it needs. All methods: @throws postgres_unavailable
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
   * Newest first. Null if `after` names no batch of the tenant. A batch that retention has removed stays
   * valid as `after` for a day.
   */
  list(page: BatchQuery): Promise<Page<BatchRow> | null>;
  /**
   * Looks up files that requests of the batch name, and pins those that its tenant can see
   * (docs/design/ends.md#pinned-files-of-requests).
   */
  pinFiles(batchId: string, fileIds: readonly string[]): Promise<PinnedFile[]>;
  /** A batch of any tenant, for its workflow; null if there is none. */
  find(batchId: string): Promise<BatchRow | null>;

  /** The API's claim of the cause `cancelled`. Null if the tenant has no such batch. */
  claimCancel(id: string, tenant: string, nowSec: number): Promise<CancelClaim | null>;
  /** The workflow's claim; returns the state of the row afterwards. */
  claimCause(batchId: string, cause: StopCause): Promise<BatchState>;
  /** Whether a cancel was claimed that the workflow has not received yet. */
  awaitsCancelSignal(id: string): Promise<boolean>;

  /** Open batches created before `createdBeforeSec` that are not known to have started, oldest first. */
  unstarted(createdBeforeSec: number, limit: number): Promise<BatchToStart[]>;
  markStarted(id: string): Promise<void>;
  /** Stores total and models, and the phase unless the transition is illegal or a cause is claimed. */
  recordPhase(batchId: string, phase: PhaseUpdate): Promise<BatchState>;

  /** Ends a batch with its files, in one transaction; returns the status of the row. @throws not_found */
  recordEnd(record: TerminalRecord): Promise<TerminalStatus>;
  /** Ends a batch whose files could not be made, with the counts that progress has shown. */
  recordUnfinalized(batchId: string, cause: StopCause | null): Promise<BatchState>;
  /** Adds files to a batch that ended without them; its status stays. @throws not_found, conflict */
  recordLateDelivery(record: TerminalRecord): Promise<TerminalStatus>;

  /** Open batches after `afterSeq`, in order of insertion. */
  openPage(page: { afterSeq: number; limit: number }): Promise<OpenBatch[]>;
  /** One open batch; null if there is none or it has ended. */
  findOpen(batchId: string): Promise<OpenBatch | null>;
  /** Counts a restart of a closed workflow. */
  noteRestart(batchId: string): Promise<void>;
  /** Adds the time since the last call to each open batch that is overdue; returns the sums, ms by id. */
  addOverdue(batchIds: readonly string[]): Promise<Map<string, number>>;
  resetOverdue(batchId: string): Promise<void>;

  /** Notes that a worker begins a step; the age of the batch, s, if it is its first ingestion, else null. */
  beginStep(
    batchId: string,
    by: { readonly step: MeasuredStep; readonly worker: string },
  ): Promise<number | null>;
  /** Notes the first request, `agoMs` before now; the age of the batch then, s, or null if it had one. */
  noteFirstRequest(batchId: string, agoMs: number): Promise<number | null>;
  /** Open batches in the hands of other workers of this host, or of a predecessor with its name. */
  held(worker: StartedWorker): Promise<HeldBatch[]>;
  /** Those of the given workers, other than `name`, that have announced themselves lately. */
  live(workers: readonly string[], name: string): Promise<Set<string>>;
}

export interface BatchRepositoryOptions {
  readonly limits?: TenantLimits;
  /** Life of result files of batches that set none, seconds; without it they never expire. */
  readonly outputFilesSec?: number;
  /** Called once for each end, by the process that wrote it, after the commit. Must not throw. */
  readonly onEnded?: (end: EndedBatch) => void;
}

/** {@link BatchRepository} over a pool that the caller ends. */
export function createBatchRepository(
  pool: Pool,
  { limits = {}, outputFilesSec, onEnded }: BatchRepositoryOptions = {},
): BatchRepository {
  const lifeSec = outputFilesSec ?? null;
  const ending = async <State>(work: (client: PoolClient) => Promise<Ending<State>>) => {
    const { state, ended } = await inTransaction(pool, work);
    if (ended !== null) onEnded?.(ended);
    return state;
  };
  return {
    insert: (batch) => insertBatch(pool, batch, limits),
    insertOnce: (batch, key) => insertBatchOnce(pool, { batch, key }, limits),
    quota: (tenant) => batchQuota(pool, tenant, limits),
    get: (id, tenant) => getBatch(pool, id, tenant),
    list: (page) => listBatches(pool, page),
    pinFiles: (batchId, fileIds) => pinFiles(pool, batchId, fileIds),
    find: (batchId) => findBatch(pool, batchId),
    claimCancel: (id, tenant, nowSec) => claimCancel(pool, { id, tenant, nowSec }),
    claimCause: (batchId, cause) => claimCause(pool, batchId, cause),
    awaitsCancelSignal: (id) => awaitsCancelSignal(pool, id),
    unstarted: (createdBeforeSec, limit) => unstartedBatches(pool, createdBeforeSec, limit),
    markStarted: (id) => markStarted(pool, id),
    recordPhase: (batchId, phase) => recordPhase(pool, batchId, phase),
    recordEnd: (record) => ending((client) => recordEnd(client, record, lifeSec)),
    recordUnfinalized: (batchId, cause) =>
      ending((client) => recordUnfinalized(client, batchId, cause)),
    recordLateDelivery: (record) =>
      inTransaction(pool, (client) => recordLateDelivery(client, record, lifeSec)),
    openPage: (page) => pageOfOpenBatches(pool, page),
    findOpen: (batchId) => findOpenBatch(pool, batchId),
    noteRestart: (batchId) => noteRestart(pool, batchId),
    addOverdue: (batchIds) => addOverdue(pool, batchIds),
    resetOverdue: (batchId) => resetOverdue(pool, batchId),
    beginStep: (batchId, by) => beginStep(pool, batchId, by),
    noteFirstRequest: (batchId, agoMs) => noteFirstRequest(pool, batchId, agoMs),
    held: (worker) => heldBatches(pool, worker),
    live: (workers, name) => liveWorkers(pool, workers, name),
  };
}
