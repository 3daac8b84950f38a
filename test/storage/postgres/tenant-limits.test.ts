import { enqueueRequests } from '../../../storage/postgres/tenant-limits';
import { useDatabase } from '../../support/postgres';
import { insertBatch } from '../../support/rows';

const database = useDatabase('batches');

const newBatch = (tenant = 'ann') => insertBatch(database.pool, { tenant });

const enqueue = (batchId: string, requests: number, max: number | undefined = 100) =>
  enqueueRequests(database.pool, { batchId, requests, max });

it('never lets more requests wait than the limit, however many batches ask at once', async () => {
  const ids = await Promise.all(Array.from({ length: 6 }, () => newBatch()));
  const verdicts = await Promise.all(ids.map((id) => enqueue(id, 40)));
  expect(verdicts.filter(Boolean)).toHaveLength(2);
  expect(await enqueue(await newBatch('bob'), 100)).toBe(true);
});

it('gives a batch that asks again the same answer', async () => {
  const id = await newBatch();
  expect(await enqueue(id, 100)).toBe(true);
  expect(await enqueue(id, 100)).toBe(true);
  expect(await enqueue(await newBatch(), 1)).toBe(false);
});

it('counts unanswered requests of open batches', async () => {
  const id = await newBatch();
  await enqueue(id, 100);
  await database.pool.query(
    `update batches set status = 'in_progress', completed = 30, failed = 10 where id = $1`,
    [id],
  );
  expect(await enqueue(await newBatch(), 41)).toBe(false);
  const other = await newBatch();
  expect(await enqueue(other, 40)).toBe(true);
  await database.pool.query(`update batches set status = 'completed' where id = $1`, [id]);
  expect(await enqueue(await newBatch(), 60)).toBe(true);
});

it('admits a stopped batch, and every batch without a limit', async () => {
  const id = await newBatch();
  await database.pool.query(`update batches set stop_cause = 'cancelled' where id = $1`, [id]);
  expect(await enqueue(id, 1_000)).toBe(true);
  expect(await enqueue(await newBatch(), 1_000, 1_000_000)).toBe(true);
  const unlimited = { batchId: await newBatch(), requests: 1e9, max: undefined };
  expect(await enqueueRequests(database.pool, unlimited)).toBe(true);
});
