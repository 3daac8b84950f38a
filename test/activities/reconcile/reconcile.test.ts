import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createReconcilePage } from '../../../activities/reconcile/reconcile';
import type {
  ReconcilePageInput,
  ReconcilePageResult,
  RecoveryAction,
} from '../../../activities/reconcile/contract';
import { createDeliverLate, readNonce } from '../../../activities/reconcile/late-delivery';
import type { FinalizeInput, FinalizeResult } from '../../../activities/contract';
import type { WorkflowState } from '../../../core/batch/orphans';
import { NightshiftError } from '../../../core/errors';
import { manifestKey, modelMapKey } from '../../../core/names/object-names';
import { encodeModelMap } from '../../../core/plan/model-map';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../../support/postgres';
import { insertBatch, type BatchOverrides } from '../../support/rows';

const NOW_SEC = Math.floor(Date.now() / 1000);
const LONG_AGO = new Date(Date.now() - 3_600_000);
const OPTIONS = { outputFilesSec: 3600 };

let database: TestDatabase;
let store: MemoryStore;
let temporal: FakeTemporal;
let recovered: RecoveryAction[];
let failures: number;
let ended: string[];

/** Workflows by id; what is started runs. */
class FakeTemporal {
  readonly workflows = new Map<string, WorkflowState>();
  readonly started: string[] = [];
  readonly cancelled: string[] = [];
  readonly waitedFor: string[] = [];
  /** Happens while reconcile waits for older holders. */
  meanwhile: (batchId: string) => void | Promise<void> = () => undefined;
  broken = new Set<string>();
  /** What visibility says, where it is not the truth; null: it does not answer. */
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

beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
afterAll(() => database?.close());
beforeEach(async () => {
  store = createMemoryStore();
  temporal = new FakeTemporal();
  recovered = [];
  failures = 0;
  ended = [];
  await database.pool.query('truncate batches, files, chunk_progress');
});

const run = <I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> =>
  new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') }).run(activity, input);

function reconcile(input: Partial<ReconcilePageInput> = {}): Promise<ReconcilePageResult> {
  const activity = createReconcilePage({
    batches: createBatchRepository(database.pool, OPTIONS),
    progress: temporal,
    store,
    workflows: temporal,
    observer: {
      recovered: (action) => void recovered.push(action),
      failed: () => void failures++,
      cycleEnded: () => undefined,
      ended: (status) => void ended.push(status),
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

async function open(workflow: WorkflowState, over: BatchOverrides = {}): Promise<string> {
  const id = await insertBatch(database.pool, {
    status: 'in_progress',
    workflow_started_at: LONG_AGO,
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
      expect(await createBatchRepository(database.pool, OPTIONS).findOpen(id)).toMatchObject({
        startSeen: true,
      });
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

describe('listing by visibility', () => {
  it('costs one call and a thirtieth of the workflows for batches that run', async () => {
    for (let i = 0; i < 300; i++) await open('running', { workflow_started_at: LONG_AGO });
    let described = 0;
    for (let cycle = 0; cycle < 30; cycle++) {
      temporal.described = 0;
      const result = await reconcile({ cycleStartedAtMs: cycle * 60_000 });
      expect(result).toMatchObject({ examined: 300, actions: [], nextSeq: null });
      expect(temporal.described).toBe(10);
      described += temporal.described;
    }
    expect([described, temporal.lists]).toEqual([300, 30]);
  });

  it('asks for those that visibility does not know, once it could', async () => {
    await open('running', { workflow_started_at: new Date() });
    const late = await open('running', { workflow_started_at: LONG_AGO });
    temporal.listed = new Set();
    await reconcile({ cycleStartedAtMs: 0 });
    expect(temporal.described).toBe(1);
    expect(late).toBeDefined();
  });

  it('finds a closed workflow that visibility shows as running for ever', async () => {
    const id = await open('closed', { workflow_started_at: LONG_AGO });
    temporal.listed = new Set([id]);
    for (let cycle = 0; cycle < 30; cycle++) await reconcile({ cycleStartedAtMs: cycle * 60_000 });
    expect(temporal.started).toEqual([id]);
  });

  it.each([
    ['asked by hand', { thorough: true }, undefined],
    ['without visibility', {}, null],
  ])('asks for each workflow: %s', async (_what, input, listed) => {
    for (let i = 0; i < 130; i++) await open('running', { workflow_started_at: LONG_AGO });
    temporal.listed = listed;
    const first = await reconcile(input);
    expect(first.examined).toBe(100);
    await reconcile({ ...input, afterSeq: first.nextSeq ?? 0 });
    expect(temporal.described).toBe(130);
  });
});

describe('the last resort', () => {
  const DONE: FinalizeResult = {
    ...{ kind: 'done', status: 'failed', counts: { total: 1, completed: 1, failed: 0 } },
    ...{ outputFileId: 'file-o', errorFileId: null },
  };
  const OVERDUE = { expires_at: NOW_SEC - 60, overdue_ms: 60_000, overdue_seen_at: new Date() };
  const finish = async ({ batchId, cause }: FinalizeInput): Promise<FinalizeResult> => {
    const status = cause ?? 'completed';
    await database.pool.query('update batches set status = $2 where id = $1', [batchId, status]);
    return { ...DONE, kind: 'done', status };
  };

  it('ends a batch whose workflow closed soon after each of three restarts', async () => {
    const id = await open('closed');
    for (let restart = 1; restart <= 3; restart++) {
      expect(await reconcile()).toMatchObject({ actions: [{ action: 'failed' }] });
      expect(temporal.started).toHaveLength(restart);
      temporal.workflows.set(id, 'closed');
    }
    expect(await reconcile({ dryRun: true })).toMatchObject({ actions: [{ action: 'ended' }] });
    temporal.onFinalize = finish;
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'ended' }], errors: 0 });
    expect(temporal.started).toHaveLength(3);
    expect(temporal.finalized).toEqual([{ batchId: id, nonce: null, cause: 'failed' }]);
    expect(await stateOf(id)).toEqual({ status: 'failed', stop_cause: 'failed' });
    expect([ended, temporal.terminated]).toEqual([['failed'], [id]]);
    expect(await reconcile()).toMatchObject({ examined: 0 });
  });

  it('counts only restarts that follow one another', async () => {
    const id = await open('closed', { restarts: 3, restarted_at: LONG_AGO });
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'failed' }] });
    expect(temporal.started).toEqual([id]);
    const { rows } = await database.pool.query<{ restarts: number }>(
      'select restarts from batches',
    );
    expect(rows).toEqual([{ restarts: 1 }]);
  });

  it.each(['running', 'closed', 'missing'] as const)(
    'ends a batch that is overdue for longer than the window: its workflow is %s',
    async (workflow) => {
      const id = await open(workflow, OVERDUE);
      temporal.onFinalize = finish;
      expect(await reconcile()).toMatchObject({ actions: [{ action: 'ended' }] });
      expect(await stateOf(id)).toEqual({ status: 'expired', stop_cause: 'expired' });
    },
  );

  it('ends it also where Temporal cannot tell of its workflow', async () => {
    const id = await open('running', OVERDUE);
    temporal.broken.add(id);
    temporal.onFinalize = finish;
    await reconcile();
    expect(await stateOf(id)).toMatchObject({ status: 'expired' });
  });

  it('waits for the window, and counts no time without a worker', async () => {
    const id = await open('running', { expires_at: NOW_SEC - 9_999 });
    await reconcile();
    await database.pool.query(`update batches set overdue_seen_at = now() - interval '30 s'`);
    await reconcile();
    expect(temporal.finalized).toEqual([]);
    await database.pool.query(
      `update batches set overdue_ms = 0, overdue_seen_at = now() - interval '3 days'`,
    );
    temporal.onFinalize = finish;
    // Of three days two minutes count, which is more than this window.
    await reconcile();
    expect(await stateOf(id)).toMatchObject({ status: 'expired' });
  });

  it.each([
    [
      'fails for now',
      () => Promise.reject(new NightshiftError('object_store_failed', 'away')),
      true,
    ],
    ['hangs', () => new Promise<never>(() => undefined), true],
    ['can never succeed', () => Promise.reject(new NightshiftError('object_corrupt', 'x')), false],
  ])('writes the record without files where making them %s', async (_what, fails, isLater) => {
    const id = await open('running', OVERDUE);
    temporal.onFinalize = fails;
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'ended' }], errors: 0 });
    expect(await stateOf(id)).toEqual({ status: 'expired', stop_cause: 'expired' });
    expect(temporal.deliveredLater).toEqual(isLater ? [id] : []);
  });

  it('keeps a cancel that was claimed', async () => {
    const id = await open('running', { ...OVERDUE, ...CANCELLED });
    await reconcile();
    expect(await stateOf(id)).toEqual({ status: 'cancelled', stop_cause: 'cancelled' });
  });

  it('completes a batch whose lines are all settled, or leaves it open while the store is away', async () => {
    const id = await open('running', { ...OVERDUE, status: 'finalizing' });
    const map = { version: 1 as const, nonce: 'b'.repeat(16), line_count: 0, unrouted: {} };
    const none = { model_to_safe: {}, safe_to_model: {}, entries: {} };
    await store.putIfAbsent(modelMapKey(id), encodeModelMap({ ...map, ...none }));
    expect(await reconcile()).toMatchObject({ actions: [], errors: 1 });
    expect(await stateOf(id)).toEqual({ status: 'finalizing', stop_cause: null });
    await database.pool.query('update batches set overdue_ms = 60000');
    temporal.onFinalize = finish;
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'ended' }] });
    expect(await stateOf(id)).toEqual({ status: 'completed', stop_cause: null });
  });

  it('expires a batch that turns out to have holes', async () => {
    const id = await open('running', { ...OVERDUE, status: 'finalizing' });
    const map = { version: 1 as const, nonce: 'b'.repeat(16), line_count: 0, unrouted: {} };
    const none = { model_to_safe: {}, safe_to_model: {}, entries: {} };
    await store.putIfAbsent(modelMapKey(id), encodeModelMap({ ...map, ...none }));
    temporal.onFinalize = (input) =>
      input.cause === null ? Promise.resolve({ kind: 'holes', holes: [] }) : finish(input);
    await reconcile();
    expect(await stateOf(id)).toEqual({ status: 'expired', stop_cause: 'expired' });
  });

  it('claims nothing over a batch whose workflow was lost while it made its manifest', async () => {
    const id = await open('closed', { ...LATE, status: 'finalizing' });
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'finalized' }] });
    expect(await stateOf(id)).toEqual({ status: 'finalizing', stop_cause: null });
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
        batches: createBatchRepository(database.pool, OPTIONS),
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
