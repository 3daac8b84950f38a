import type { RecoveryAction } from '../../../activities/reconcile/contract';
import type { WorkflowState } from '../../../core/batch/orphans';
import { manifestKey } from '../../../core/names/object-names';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { type BatchOverrides } from '../../support/rows';
import {
  CANCELLED,
  LATE,
  NOW_SEC,
  OPTIONS,
  database,
  everything,
  failures,
  open,
  reconcile,
  recovered,
  stateOf,
  store,
  temporal,
  useReconcileWorld,
} from './reconcile-world';

useReconcileWorld();

/** What reconcile finds, what it does, and the stop cause in the row afterwards. */
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

  it.each(CASES)('reports the action in a dry run, and changes nothing: %s', async (...found) => {
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
  ] as const)('claims nothing if every line is settled: %s %j', async (workflow, over) => {
    const id = await open(workflow, over);
    await store.putIfAbsent(manifestKey(id), Buffer.from('{}'));
    expect(await reconcile({ dryRun: true })).toMatchObject({ actions: [{ action: 'finalized' }] });
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'finalized' }] });
    expect(await stateOf(id)).toEqual({ status: 'in_progress', stop_cause: null });
    expect(temporal.started).toEqual([id]);
  });

  it('does nothing to batches that run, have ended or are being created', async () => {
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

  it('keeps a cancel that is claimed while it waits for older chunks', async () => {
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
  ])('claims nothing if, while it waited for older chunks, %s', async (_what, change) => {
    const id = await open('closed');
    temporal.meanwhile = async (batchId) => void (await change(batchId));
    expect((await reconcile()).actions).toEqual([]);
    expect(temporal.started).toEqual([]);
    expect(await stateOf(id)).toMatchObject({ stop_cause: null });
  });

  it('claims the cause that applies after the wait for older chunks, not before it', async () => {
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

  it('never treats an error of Temporal as a missing workflow', async () => {
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
