import { createDeliverLate } from '../../../activities/reconcile/late-delivery';
import type { FinalizeInput } from '../../../activities/contract';
import { modelMapKey } from '../../../core/names/object-names';
import { encodeModelMap } from '../../../core/plan/model-map';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { insertBatch } from '../../support/rows';
import { OPTIONS, database, run, store, useReconcileWorld } from './reconcile-world';

useReconcileWorld();

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

  it('finalizes under the cause `failed` if the batch ended without a cause', async () => {
    const id = await insertBatch(database.pool, { status: 'failed' });
    await store.putIfAbsent(modelMapKey(id), map);
    await deliver(id);
    expect(finalized).toMatchObject([{ cause: 'failed' }]);
  });

  it('returns the files of a batch that has them', async () => {
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
