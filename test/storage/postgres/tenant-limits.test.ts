import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { enqueueRequests } from '../../../storage/postgres/tenant-limits';
import { POSTGRES_START_MS, type TestDatabase, withDatabase } from '../../support/postgres';

let database: TestDatabase;
beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
afterAll(() => database.close());
beforeEach(() => database.pool.query('truncate batches'));

let count = 0;
async function insertBatch(tenant = 'ann'): Promise<string> {
  const { id } = await createBatchRepository(database.pool).insert({
    id: `batch_${String(count++).padStart(32, '0')}`,
    tenant,
    endpoint: '/v1/responses',
    inputFileId: 'file-none',
    completionWindow: '24h',
    metadata: null,
    outputExpiresAfterSec: null,
    createdAtSec: 1_000,
    expiresAtSec: 2_000,
  });
  return id;
}

const enqueue = (batchId: string, requests: number, max: number | undefined = 100) =>
  enqueueRequests(database.pool, { batchId, requests, max });

it('never lets more requests wait than the limit, however many batches ask at once', async () => {
  const ids = await Promise.all(Array.from({ length: 6 }, () => insertBatch()));
  const verdicts = await Promise.all(ids.map((id) => enqueue(id, 40)));
  expect(verdicts.filter(Boolean)).toHaveLength(2);
  expect(await enqueue(await insertBatch('bob'), 100)).toBe(true);
});

it('gives a batch that asks again the same answer', async () => {
  const id = await insertBatch();
  expect(await enqueue(id, 100)).toBe(true);
  expect(await enqueue(id, 100)).toBe(true);
  expect(await enqueue(await insertBatch(), 1)).toBe(false);
});

it('counts unanswered requests of open batches', async () => {
  const id = await insertBatch();
  await enqueue(id, 100);
  await database.pool.query(
    `update batches set status = 'in_progress', completed = 30, failed = 10 where id = $1`,
    [id],
  );
  expect(await enqueue(await insertBatch(), 41)).toBe(false);
  const other = await insertBatch();
  expect(await enqueue(other, 40)).toBe(true);
  await database.pool.query(`update batches set status = 'completed' where id = $1`, [id]);
  expect(await enqueue(await insertBatch(), 60)).toBe(true);
});

it('admits a stopped batch, and every batch without a limit', async () => {
  const id = await insertBatch();
  await database.pool.query(`update batches set stop_cause = 'cancelled' where id = $1`, [id]);
  expect(await enqueue(id, 1_000)).toBe(true);
  expect(await enqueue(await insertBatch(), 1_000, 1_000_000)).toBe(true);
  const unlimited = { batchId: await insertBatch(), requests: 1e9, max: undefined };
  expect(await enqueueRequests(database.pool, unlimited)).toBe(true);
});
