import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createReconcilePage } from '../../activities/reconcile';
import type { ReconcilePageResult, RecoveryAction } from '../../activities/reconcile-types';
import { createDeliverLate } from '../../activities/reconcile-deliver';
import type { FinalizeInput } from '../../activities/types';
import type { WorkflowState } from '../../core/batch/orphans';
import { manifestKey, modelMapKey } from '../../core/plan/keys';
import { encodeModelMap } from '../../core/plan/model-map';
import { createBatchRecords } from '../../storage/postgres/batch-records';
import { createReconcileRows } from '../../storage/postgres/reconcile';
import { createMemoryStore, type MemoryStore } from '../support/memory-store';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../support/postgres';
import { insertBatch, type BatchOverrides } from '../support/rows';

const NOW_SEC = Math.floor(Date.now() / 1000);
const OPTIONS = { outputFilesSec: 3600 };

let database: TestDatabase;
let store: MemoryStore;
let temporal: FakeTemporal;
let recovered: RecoveryAction[];
let failures: number;

/** Workflows by id; what is started runs. */
class FakeTemporal {
  readonly workflows = new Map<string, WorkflowState>();
  readonly started: string[] = [];
  readonly cancelled: string[] = [];
  readonly waitedFor: string[] = [];
  /** Happens while reconcile waits for older holders. */
  meanwhile: (batchId: string) => void | Promise<void> = () => undefined;
  broken = new Set<string>();

  describe = (id: string): Promise<WorkflowState> =>
    this.broken.has(id)
      ? Promise.reject(new Error('does not answer'))
      : Promise.resolve(this.workflows.get(id) ?? 'missing');

  starter = {
    start: ({ id }: { id: string }): Promise<void> => {
      this.started.push(id);
      this.workflows.set(id, 'running');
      return Promise.resolve();
    },
    cancel: (id: string): Promise<void> => {
      this.cancelled.push(id);
      return Promise.resolve();
    },
  };

  awaitReleased = async (id: string): Promise<void> => {
    this.waitedFor.push(id);
    await this.meanwhile(id);
  };
}

beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
afterAll(() => database?.close());
beforeEach(async () => {
  store = createMemoryStore();
  temporal = new FakeTemporal();
  recovered = [];
  failures = 0;
  await database.pool.query('truncate batches, files, chunk_progress');
});

const run = <I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> =>
  new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') }).run(activity, input);

function reconcile({ dryRun = false, afterSeq = 0 } = {}): Promise<ReconcilePageResult> {
  const activity = createReconcilePage({
    rows: createReconcileRows(database.pool, OPTIONS),
    records: createBatchRecords(database.pool, OPTIONS),
    progress: temporal,
    store,
    starter: temporal.starter,
    describe: temporal.describe,
    observer: {
      recovered: (action) => void recovered.push(action),
      failed: () => void failures++,
      cycleEnded: () => undefined,
      removed: () => undefined,
    },
    graceMs: 1_000,
  });
  return run(activity, { afterSeq, dryRun, cycleStartedAtMs: Date.now() });
}

async function open(workflow: WorkflowState, over: BatchOverrides = {}): Promise<string> {
  const id = await insertBatch(database.pool, {
    status: 'in_progress',
    workflow_started_at: new Date(),
    created_at: NOW_SEC - 600,
    ...over,
  });
  if (workflow !== 'missing') temporal.workflows.set(id, workflow);
  return id;
}

async function everything(): Promise<unknown> {
  const batches = await database.pool.query('select * from batches order by seq');
  const files = await database.pool.query('select * from files order by seq');
  return { batches: batches.rows, files: files.rows, objects: [...store.objects.keys()].sort() };
}

async function stateOf(id: string): Promise<Record<string, unknown>> {
  const { rows } = await database.pool.query<Record<string, unknown>>(
    'select status, stop_cause from batches where id = $1',
    [id],
  );
  return rows[0] ?? {};
}

const CANCELLED = { status: 'cancelling', stop_cause: 'cancelled', cancelling_at: NOW_SEC - 60 };
const LATE = { expires_at: NOW_SEC - 1 };

/** What is found, what is done, what the row says afterwards. */
const CASES: [string, WorkflowState, BatchOverrides, RecoveryAction, string | null][] = [
  [
    'never started',
    'missing',
    { workflow_started_at: null, status: 'validating' },
    'started',
    null,
  ],
  ['unknown to Temporal', 'missing', {}, 'resumed', null],
  ['unknown and past its end', 'missing', LATE, 'expired', 'expired'],
  ['closed', 'closed', {}, 'failed', 'failed'],
  ['closed and past its end', 'closed', LATE, 'expired', 'expired'],
  ['closed with a cancel claimed', 'closed', CANCELLED, 'cancelled', 'cancelled'],
  ['unknown with a cancel claimed', 'missing', CANCELLED, 'cancelled', 'cancelled'],
];

describe('reconcile', () => {
  it.each(CASES)(
    'starts a batch again that is %s',
    async (_what, workflow, over, action, cause) => {
      const id = await open(workflow, over);
      const result = await reconcile();
      expect(result).toMatchObject({ examined: 1, errors: 0, nextSeq: null });
      expect(result.actions).toEqual([
        { batchId: id, status: over['status'] ?? 'in_progress', workflow, action },
      ]);
      expect(temporal.started).toEqual([id]);
      expect(temporal.waitedFor).toEqual([id]);
      expect(await stateOf(id)).toMatchObject({ stop_cause: cause });
      expect(recovered).toEqual([action]);
      await reconcile();
      expect(temporal.started).toEqual([id]);
    },
  );

  it.each(CASES)('says so in a dry run, and changes nothing: %s', async (...found) => {
    const [, workflow, over, action] = found;
    const id = await open(workflow, over);
    const before = await everything();
    const result = await reconcile({ dryRun: true });
    expect(result.actions).toMatchObject([{ batchId: id, action }]);
    expect(await everything()).toEqual(before);
    expect([temporal.started, temporal.cancelled, recovered]).toEqual([[], [], []]);
  });

  it.each([
    ['closed', {}],
    ['closed', LATE],
    ['missing', LATE],
  ] as const)('claims nothing where every line is settled: %s %j', async (workflow, over) => {
    const id = await open(workflow, over);
    await store.putIfAbsent(manifestKey(id), Buffer.from('{}'));
    expect(await reconcile({ dryRun: true })).toMatchObject({ actions: [{ action: 'finalized' }] });
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'finalized' }] });
    expect(await stateOf(id)).toEqual({ status: 'in_progress', stop_cause: null });
    expect(temporal.started).toEqual([id]);
  });

  it('leaves alone what runs, what has ended and what is being created', async () => {
    await open('running');
    await open('running', LATE);
    await open('running', { ...CANCELLED, stop_taken_at: new Date() });
    await open('closed', { status: 'completed' });
    await open('missing', { workflow_started_at: null, created_at: NOW_SEC });
    const before = await everything();
    expect(await reconcile()).toMatchObject({ examined: 4, actions: [], errors: 0 });
    expect(await everything()).toEqual(before);
    expect(temporal.started).toEqual([]);
  });

  it('signals a cancel again that the workflow has not taken', async () => {
    const id = await open('running', CANCELLED);
    await open('running', { ...CANCELLED, cancelling_at: NOW_SEC });
    const { actions } = await reconcile();
    expect(actions).toMatchObject([{ batchId: id, action: 'cancel_signalled' }]);
    expect(temporal.cancelled).toEqual([id]);
    expect(temporal.started).toEqual([]);
  });

  it('obeys a cancel that was claimed while it waited', async () => {
    const id = await open('closed');
    temporal.meanwhile = async () => {
      await database.pool.query(
        `update batches set status = 'cancelling', stop_cause = 'cancelled' where id = $1`,
        [id],
      );
    };
    expect((await reconcile()).actions).toMatchObject([{ action: 'cancelled' }]);
    expect(await stateOf(id)).toEqual({ status: 'cancelling', stop_cause: 'cancelled' });
  });

  it.each([
    [
      'the batch ended',
      (id: string) =>
        database.pool.query(`update batches set status = 'completed' where id = $1`, [id]),
    ],
    ['its workflow was reset', (id: string) => temporal.workflows.set(id, 'running')],
  ])('claims nothing where, while it waited, %s', async (_what, change) => {
    const id = await open('closed');
    temporal.meanwhile = async (batchId) => void (await change(batchId));
    expect((await reconcile()).actions).toEqual([]);
    expect(temporal.started).toEqual([]);
    expect(await stateOf(id)).toMatchObject({ stop_cause: null });
  });

  it('claims what is true after it waited, not what was true before', async () => {
    const id = await open('missing');
    temporal.meanwhile = async (batchId) => {
      const text = 'update batches set expires_at = $2 where id = $1';
      await database.pool.query(text, [batchId, NOW_SEC - 1]);
    };
    expect((await reconcile()).actions).toMatchObject([{ batchId: id, action: 'expired' }]);
    expect(await stateOf(id)).toMatchObject({ stop_cause: 'expired' });
  });

  it('starts nothing for a batch that ends while its cause is claimed', async () => {
    const id = await open('closed');
    const head = store.head;
    store.head = async (key) => {
      await database.pool.query(`update batches set status = 'completed' where id = $1`, [id]);
      return head(key);
    };
    expect((await reconcile()).actions).toEqual([]);
    expect(temporal.started).toEqual([]);
    expect(await stateOf(id)).toEqual({ status: 'completed', stop_cause: null });
  });

  it('never takes a Temporal that does not answer for one that lost its workflows', async () => {
    const broken = await open('closed');
    const other = await open('missing');
    temporal.broken.add(broken);
    expect(await reconcile()).toMatchObject({ examined: 2, errors: 1 });
    expect(temporal.started).toEqual([other]);
    expect(await stateOf(broken)).toMatchObject({ stop_cause: null });
    expect(failures).toBe(1);
  });

  it('goes through more batches than a page holds', async () => {
    const ids = [];
    for (let i = 0; i < 130; i++) ids.push(await open('missing'));
    const first = await reconcile();
    expect(first.examined).toBe(100);
    const second = await reconcile({ afterSeq: first.nextSeq ?? 0 });
    expect(second).toMatchObject({ examined: 30, nextSeq: null });
    expect(temporal.started.sort()).toEqual(ids.sort());
  });
});

describe('a late delivery', () => {
  const finalized: FinalizeInput[] = [];
  const map = encodeModelMap({
    version: 1,
    nonce: 'bbbbbbbbbbbbbbbb',
    line_count: 1,
    model_to_safe: { m: 'm' },
    safe_to_model: { m: 'm' },
    entries: { m: 1 },
    unrouted: {},
  });

  beforeEach(() => void (finalized.length = 0));

  const deliver = (batchId: string) =>
    run(
      createDeliverLate({
        rows: createReconcileRows(database.pool, OPTIONS),
        store,
        finalize: (input) => {
          finalized.push(input);
          const counts = { total: 1, completed: 1, failed: 0 };
          const files = { outputFileId: 'file-o', errorFileId: null };
          return Promise.resolve({ kind: 'done', status: 'failed', counts, ...files });
        },
      }),
      { batchId },
    );

  it('finalizes under the cause that the batch ended with', async () => {
    const id = await insertBatch(database.pool, { status: 'cancelled', stop_cause: 'cancelled' });
    await store.putIfAbsent(modelMapKey(id), map);
    expect(await deliver(id)).toMatchObject({ delivered: true, outputFileId: 'file-o' });
    expect(finalized).toEqual([{ batchId: id, nonce: 'bbbbbbbbbbbbbbbb', cause: 'cancelled' }]);
  });

  it('finalizes under the cause failed a batch that ended without any', async () => {
    const id = await insertBatch(database.pool, { status: 'failed' });
    await store.putIfAbsent(modelMapKey(id), map);
    await deliver(id);
    expect(finalized).toMatchObject([{ cause: 'failed' }]);
  });

  it('tells the files of a batch that has them', async () => {
    const id = await insertBatch(database.pool, { status: 'completed', error_file_id: 'file-e' });
    expect(await deliver(id)).toEqual({
      status: 'completed',
      outputFileId: null,
      errorFileId: 'file-e',
      delivered: false,
    });
    expect(finalized).toEqual([]);
  });

  it.each([
    ['is open', { status: 'in_progress' }, 'conflict'],
    ['had a file that was refused', { status: 'failed' }, 'plan_unreadable'],
  ])('refuses a batch that %s', async (_what, over, type) => {
    const id = await insertBatch(database.pool, over);
    await expect(deliver(id)).rejects.toMatchObject({ type, nonRetryable: true });
    await expect(deliver(`${id}0`)).rejects.toMatchObject({ type: 'not_found' });
  });
});
