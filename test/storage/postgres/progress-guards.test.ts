import pino from 'pino';
import type { BatchOverrides } from '../../support/rows';
import { insertBatch } from '../../support/rows';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { createProgressReporter } from '../../../storage/postgres/progress';
import { showCounts, takeEpoch, touchRows } from '../../../storage/postgres/progress-sql';
import { useDatabase } from '../../support/postgres';
import { until } from '../../support/until';

/** What concurrent statements must never overwrite. */

const database = useDatabase();

const insert = (over: BatchOverrides = {}) =>
  insertBatch(database.pool, { status: 'in_progress', total: 10, ...over });

interface Chunk {
  readonly from?: number;
  readonly to?: number;
  readonly epoch?: number;
  readonly completed?: number;
  readonly failed?: number;
  readonly released?: boolean;
}

/** A row that was not touched for a minute, so that no later attempt waits for its holder. */
async function insertChunk(batchId: string, chunk: Chunk = {}): Promise<void> {
  const { from = 0, to = 10, epoch = 1, completed = 0, failed = 0, released = false } = chunk;
  await database.pool.query(
    `insert into chunk_progress
       (batch_id, safe_model, from_pos, to_pos, epoch, worker, completed, failed, released, touched_at)
     values ($1, 'm', $2, $3, $4, 'earlier', $5, $6, $7, now() - interval '1 minute')`,
    [batchId, from, to, epoch, completed, failed, released],
  );
}

async function columns(batchId: string): Promise<Record<string, unknown>> {
  const { rows } = await database.pool.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [batchId],
  );
  return rows[0] ?? {};
}

async function chunks(batchId: string): Promise<{ from: number; worker: string }[]> {
  const { rows } = await database.pool.query<{ from: number; worker: string }>(
    `select from_pos as from, worker from chunk_progress where batch_id = $1 order by from_pos`,
    [batchId],
  );
  return rows;
}

/** Above every epoch that the sequence has given out. */
const NEWER = 2 ** 40;
const attempt = (batchId: string, from = 0, to = 10) =>
  takeEpoch(database.pool, {
    ...{ batchId, safeModel: 'm', from, to },
    ...{ worker: 'older', yielding: false },
  });

describe('the counts that a batch shows', () => {
  it.each([
    ['completed', { completed: 3, failed: 3 }, { completed: 6, failed: 3 }],
    ['failed', { completed: 7, failed: 1 }, { completed: 7, failed: 2 }],
  ])('never decrease when an attempt reports fewer: %s', async (_, sums, shown) => {
    const id = await insert({ completed: 6, failed: 2 });
    await insertChunk(id, sums);
    await showCounts(database.pool, [id]);
    expect(await columns(id)).toMatchObject(shown);
  });

  it.each([
    ['completed', { completed: 25 }, { completed: 10, failed: 0 }],
    ['failed', { failed: 25 }, { completed: 0, failed: 10 }],
    ['both', { completed: 7, failed: 7 }, { completed: 7, failed: 3 }],
  ])('never exceed its number of lines: %s', async (_, sums, shown) => {
    const id = await insert();
    await insertChunk(id, sums);
    await showCounts(database.pool, [id]);
    expect(await columns(id)).toMatchObject(shown);
  });

  it.each(['completed', 'failed', 'expired', 'cancelled'])(
    'stay as they are once it is %s',
    async (status) => {
      const id = await insert({ status, completed: 1 });
      await insertChunk(id, { completed: 5, failed: 2 });
      await showCounts(database.pool, [id]);
      expect(await columns(id)).toMatchObject({ completed: 1, failed: 0 });
    },
  );
});

describe('an attempt whose epoch is smaller than the epoch in the row', () => {
  it('does not take the row, and learns with its next tick that it must not send', async () => {
    const id = await insert();
    await insertChunk(id, { epoch: NEWER });
    const reporter = createProgressReporter({
      pool: database.pool,
      worker: 'older',
      logger: pino({ level: 'silent' }),
      intervalMs: 20,
    });
    const lease = await reporter.begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    await until(() => lease.lost, 5_000, 'the loss of the row');
    expect(lease.maySend()).toBe(false);
    await lease.release({ to: 10, completed: 10, failed: 0 });
    await reporter.close();
    expect(await chunks(id)).toEqual([{ from: 0, worker: 'earlier' }]);
    expect(await columns(id)).toMatchObject({ completed: 0 });
  });

  it('neither holds the row nor writes its counts', async () => {
    const id = await insert();
    await insertChunk(id, { epoch: NEWER });
    const counts = { completed: 4, failed: 1, released: true };
    const row = { batchId: id, safeModel: 'm', from: 0, to: 10, epoch: NEWER - 1, ...counts };
    expect(await touchRows(database.pool, [row])).toMatchObject([{ held: false }]);
    await showCounts(database.pool, [id]);
    expect(await columns(id)).toMatchObject({ completed: 0, failed: 0 });
  });

  it('does not remove rows of newer attempts that begin inside its range', async () => {
    const id = await insert();
    await insertChunk(id, { from: 5, epoch: NEWER });
    await attempt(id);
    expect(await chunks(id)).toEqual([
      { from: 0, worker: 'older' },
      { from: 5, worker: 'earlier' },
    ]);
  });
});

describe('an attempt with the newest epoch', () => {
  it('takes the row of an earlier one and the rows inside its range, and no others', async () => {
    const id = await insert({ total: 100 });
    for (const from of [0, 10, 15, 20]) await insertChunk(id, { from, to: from + 5 });
    await attempt(id, 10, 20);
    expect(await chunks(id)).toEqual([
      { from: 0, worker: 'earlier' },
      { from: 10, worker: 'older' },
      { from: 20, worker: 'earlier' },
    ]);
  });

  it('holds a row that an earlier one had released', async () => {
    const id = await insert();
    await insertChunk(id, { released: true });
    await attempt(id);
    const { rows } = await database.pool.query<{ released: boolean }>(
      'select released from chunk_progress where batch_id = $1',
      [id],
    );
    expect(rows).toEqual([{ released: false }]);
  });
});

describe('a phase that comes after a claimed stop', () => {
  const records = () => createBatchRepository(database.pool, { outputFilesSec: 1 });

  it.each([
    ['expired', 'validating', 'in_progress'],
    ['failed', 'in_progress', 'finalizing'],
    ['expired', 'validating', 'finalizing'],
  ] as const)('is not taken: %s claimed, %s → %s', async (cause, before, after) => {
    const id = await insert({ status: before, total: 0 });
    await records().claimCause(id, cause);
    const verdict = await records().recordPhase(id, { status: after, total: 10 });
    expect(verdict).toEqual({ found: true, status: before, stopCause: cause });
    const { in_progress_at: begun, finalizing_at: finalizing, total } = await columns(id);
    expect({ begun, finalizing, total }).toEqual({ begun: null, finalizing: null, total: 10 });
  });

  it('never makes the total smaller', async () => {
    const id = await insert({ total: 10 });
    await records().recordPhase(id, { status: 'finalizing', total: 4 });
    expect(await columns(id)).toMatchObject({ status: 'finalizing', total: 10 });
  });
});
