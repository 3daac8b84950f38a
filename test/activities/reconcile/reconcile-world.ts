import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createReconcilePage } from '../../../activities/reconcile/reconcile';
import type {
  ReconcilePageInput,
  ReconcilePageResult,
  RecoveryAction,
} from '../../../activities/reconcile/contract';
import { readNonce } from '../../../activities/reconcile/late-delivery';
import type { FinalizeInput, FinalizeResult } from '../../../activities/contract';
import type { WorkflowState } from '../../../core/batch/orphans';
import { NightshiftError } from '../../../core/errors';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../../support/postgres';
import { insertBatch, type BatchOverrides } from '../../support/rows';

export const NOW_SEC = Math.floor(Date.now() / 1000);
export const LONG_AGO = new Date(Date.now() - 3_600_000);
export const OPTIONS = { outputFilesSec: 3600 };

export let database: TestDatabase;
export let store: MemoryStore;
export let temporal: FakeTemporal;
export let recovered: RecoveryAction[];
export let failures: number;

/** Temporal in memory: workflows by id. A started workflow keeps running. */
export class FakeTemporal {
  readonly workflows = new Map<string, WorkflowState>();
  readonly started: string[] = [];
  readonly cancelled: string[] = [];
  readonly waitedFor: string[] = [];
  /** Called while reconcile waits for older chunks. */
  meanwhile: (batchId: string) => void | Promise<void> = () => undefined;
  broken = new Set<string>();
  /** What visibility lists instead of the truth; null if it does not answer. */
  listed: ReadonlySet<string> | null | undefined;
  described = 0;
  lists = 0;
  readonly terminated: string[] = [];
  readonly deliveredLater: string[] = [];
  readonly finalized: FinalizeInput[] = [];
  onFinalize: (input: FinalizeInput) => Promise<FinalizeResult> = () =>
    Promise.reject(new NightshiftError('object_store_failed', 'away'));

  describe = (id: string): Promise<WorkflowState> => {
    this.described++;
    return this.broken.has(id)
      ? Promise.reject(new Error('does not answer'))
      : Promise.resolve(this.workflows.get(id) ?? 'missing');
  };

  listRunning = (): Promise<ReadonlySet<string>> => {
    this.lists++;
    if (this.listed === null) return Promise.reject(new Error('no visibility'));
    const running = [...this.workflows].filter(([, state]) => state === 'running');
    return Promise.resolve(this.listed ?? new Set(running.map(([id]) => id)));
  };

  terminate(id: string): Promise<void> {
    this.terminated.push(id);
    return Promise.resolve();
  }

  deliverLater(id: string): Promise<void> {
    this.deliveredLater.push(id);
    return Promise.resolve();
  }

  start({ id }: { id: string }): Promise<void> {
    this.started.push(id);
    this.workflows.set(id, 'running');
    return Promise.resolve();
  }

  cancel(id: string): Promise<void> {
    this.cancelled.push(id);
    return Promise.resolve();
  }

  awaitReleased = async (id: string): Promise<void> => {
    this.waitedFor.push(id);
    await this.meanwhile(id);
  };
}

/** Opens a database for the tests of a file, and clears everything before each. */
export function useReconcileWorld(): void {
  beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
  afterAll(() => database?.close());
  beforeEach(async () => {
    store = createMemoryStore();
    temporal = new FakeTemporal();
    recovered = [];
    failures = 0;
    await database.pool.query('truncate batches, files, chunk_progress');
  });
}

export const run = <I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> =>
  new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') }).run(activity, input);

export function reconcile(input: Partial<ReconcilePageInput> = {}): Promise<ReconcilePageResult> {
  const activity = createReconcilePage({
    batches: createBatchRepository(database.pool, OPTIONS),
    progress: temporal,
    store,
    workflows: temporal,
    observer: {
      recovered: (action) => void recovered.push(action),
      failed: () => void failures++,
      cycleEnded: () => undefined,
    },
    nonceOf: (id) => readNonce(store, id),
    finalize: (one) => {
      temporal.finalized.push(one);
      return temporal.onFinalize(one);
    },
    ...{ graceMs: 1_000, finalizeWindowMs: 60_000, overdueAfterSec: 10, deliveryMs: 200 },
  });
  return run(activity, { afterSeq: 0, dryRun: false, cycleStartedAtMs: Date.now(), ...input });
}

export async function open(workflow: WorkflowState, over: BatchOverrides = {}): Promise<string> {
  const id = await insertBatch(database.pool, {
    status: 'in_progress',
    workflow_started_at: LONG_AGO,
    created_at: NOW_SEC - 600,
    ...over,
  });
  if (workflow !== 'missing') temporal.workflows.set(id, workflow);
  return id;
}

export async function everything(): Promise<unknown> {
  const batches = await database.pool.query('select * from batches order by seq');
  const files = await database.pool.query('select * from files order by seq');
  return { batches: batches.rows, files: files.rows, objects: [...store.objects.keys()].sort() };
}

export async function stateOf(id: string): Promise<Record<string, unknown>> {
  const { rows } = await database.pool.query<Record<string, unknown>>(
    'select status, stop_cause from batches where id = $1',
    [id],
  );
  return rows[0] ?? {};
}

export const CANCELLED = {
  status: 'cancelling',
  stop_cause: 'cancelled',
  cancelling_at: NOW_SEC - 60,
};
export const LATE = { expires_at: NOW_SEC - 1 };
