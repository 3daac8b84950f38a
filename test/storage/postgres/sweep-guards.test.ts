import { createSweepRows, type SweepRows } from '../../../storage/postgres/sweep';
import { useDatabase } from '../../support/postgres';
import { insertBatch } from '../../support/rows';

/** Rows that the sweep must not remove, even if a caller names them. */

const HOUR_SEC = 3_600;
const NOW_SEC = Math.floor(Date.now() / 1000);
const OPEN = ['validating', 'in_progress', 'finalizing', 'cancelling'] as const;

const database = useDatabase('batches', 'removed_batches', 'chunk_progress');
let rows: SweepRows;

beforeAll(() => {
  rows = createSweepRows(database.pool);
});

async function count(table: string): Promise<number> {
  const text = `select count(*)::int as n from ${table}`;
  return (await database.pool.query<{ n: number }>(text)).rows[0]?.n ?? -1;
}

const page = { endedBeforeSec: NOW_SEC + HOUR_SEC, afterSeq: 0, limit: 10 };

it.each(OPEN)('neither clears nor removes a batch that is %s, however old', async (status) => {
  const id = await insertBatch(database.pool, { status, created_at: 1, expires_at: 2 });
  expect(await rows.batchesToClear(page)).toEqual([]);
  expect(await rows.batchesToRemove(page)).toEqual([]);
  await rows.removeBatches([id]);
  expect([await count('batches'), await count('removed_batches')]).toEqual([1, 0]);
});

it('removes an ended batch after its retention, and keeps its place in lists', async () => {
  const id = await insertBatch(database.pool, { status: 'expired', expired_at: NOW_SEC });
  expect(await rows.batchesToRemove({ ...page, endedBeforeSec: NOW_SEC - 1 })).toEqual([]);
  expect(await rows.batchesToRemove(page)).toMatchObject([{ id, hasFiles: false }]);
  await rows.removeBatches([id]);
  expect([await count('batches'), await count('removed_batches')]).toEqual([0, 1]);
});

describe('the progress of a chunk', () => {
  const touch = (batchId: string, ago: string) =>
    database.pool.query(
      `insert into chunk_progress (batch_id, safe_model, from_pos, to_pos, epoch, worker, touched_at)
       values ($1, 'm', 0, 9, 1, 'w', now() - $2::interval)`,
      [batchId, ago],
    );

  it.each(OPEN)('stays while its batch is %s, even if an end was claimed', async (status) => {
    const stop_cause = status === 'cancelling' ? 'cancelled' : 'expired';
    await touch(await insertBatch(database.pool, { status, stop_cause }), '2 days');
    expect(await rows.removeStaleProgress(10)).toBe(0);
    expect(await count('chunk_progress')).toBe(1);
  });

  it('is removed an hour after its last touch, once its batch has ended or is removed', async () => {
    await touch(await insertBatch(database.pool, { status: 'completed' }), '59 minutes');
    await touch(await insertBatch(database.pool, { status: 'completed' }), '61 minutes');
    await touch('batch_gone', '61 minutes');
    expect(await rows.removeStaleProgress(10)).toBe(2);
    expect(await count('chunk_progress')).toBe(1);
  });
});
