import type { FinalizeInput, FinalizeResult } from '../../../activities/contract';
import { NightshiftError } from '../../../core/errors';
import { modelMapKey } from '../../../core/names/object-names';
import { encodeModelMap } from '../../../core/plan/model-map';
import {
  LONG_AGO,
  NOW_SEC,
  database,
  open,
  reconcile,
  stateOf,
  store,
  temporal,
  useReconcileWorld,
  CANCELLED,
  LATE,
} from './reconcile-world';

useReconcileWorld();

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
    expect(temporal.terminated).toEqual([id]);
    expect(await reconcile()).toMatchObject({ examined: 0 });
  });

  it('counts only restarts that follow each other closely', async () => {
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

  it('ends a batch even if Temporal cannot describe its workflow', async () => {
    const id = await open('running', OVERDUE);
    temporal.broken.add(id);
    temporal.onFinalize = finish;
    await reconcile();
    expect(await stateOf(id)).toMatchObject({ status: 'expired' });
  });

  it('waits for the window, and counts at most two minutes of a gap without a worker', async () => {
    const id = await open('running', { expires_at: NOW_SEC - 9_999 });
    await reconcile();
    await database.pool.query(`update batches set overdue_seen_at = now() - interval '30 s'`);
    await reconcile();
    expect(temporal.finalized).toEqual([]);
    await database.pool.query(
      `update batches set overdue_ms = 0, overdue_seen_at = now() - interval '3 days'`,
    );
    temporal.onFinalize = finish;
    // Two minutes of the three days count, which is more than this window.
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
  ])('writes the record without files if making them %s', async (_what, fails, isLater) => {
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

  it('expires a batch that turns out to have unanswered ranges', async () => {
    const id = await open('running', { ...OVERDUE, status: 'finalizing' });
    const map = { version: 1 as const, nonce: 'b'.repeat(16), line_count: 0, unrouted: {} };
    const none = { model_to_safe: {}, safe_to_model: {}, entries: {} };
    await store.putIfAbsent(modelMapKey(id), encodeModelMap({ ...map, ...none }));
    temporal.onFinalize = (input) =>
      input.cause === null ? Promise.resolve({ kind: 'holes', holes: [] }) : finish(input);
    await reconcile();
    expect(await stateOf(id)).toEqual({ status: 'expired', stop_cause: 'expired' });
  });

  it('claims no cause for a batch whose workflow was lost while it wrote its manifest', async () => {
    const id = await open('closed', { ...LATE, status: 'finalizing' });
    expect(await reconcile()).toMatchObject({ actions: [{ action: 'finalized' }] });
    expect(await stateOf(id)).toEqual({ status: 'finalizing', stop_cause: null });
  });
});
