import { createBatchRepository } from '../../../../storage/postgres/batches/repository';
import { POSTGRES_START_MS, type TestDatabase, withDatabase } from '../../../support/postgres';

let database: TestDatabase;
beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
afterAll(() => database.close());

let count = 0;
async function insertBatch(): Promise<string> {
  const { id } = await createBatchRepository(database.pool).insert({
    id: `batch_${String(count++).padStart(32, '0')}`,
    tenant: 'ann',
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

it('gives the row one cause, however a cancel and an expiry race', async () => {
  const batches = createBatchRepository(database.pool);
  for (let round = 0; round < 20; round++) {
    const id = await insertBatch();
    const [claim, verdict] = await Promise.all([
      batches.claimCancel(id, 'ann', 1_500),
      batches.claimCause(id, 'expired'),
    ]);
    expect(claim?.claimed).toBe(verdict.stopCause === 'cancelled');
    expect(claim?.batch.stopCause).toBe(verdict.stopCause);
    expect(claim?.batch.status).toBe(
      verdict.stopCause === 'cancelled' ? 'cancelling' : 'validating',
    );
  }
});

it('finds no batch of another tenant', async () => {
  const batches = createBatchRepository(database.pool);
  const id = await insertBatch();
  expect(await batches.claimCancel(id, 'bob', 1_500)).toBeNull();
  expect(await batches.get(id, 'bob')).toBeNull();
  expect(await batches.get(id, 'ann')).toMatchObject({ id, stopCause: null });
});

it('lists as unstarted the old open batches that are not marked', async () => {
  const batches = createBatchRepository(database.pool);
  await database.pool.query('delete from batches');
  const [waiting, marked, ended] = [await insertBatch(), await insertBatch(), await insertBatch()];
  await batches.markStarted(marked);
  await database.pool.query(`update batches set status = 'failed' where id = $1`, [ended]);
  expect((await batches.unstarted(1_001, 10)).map(({ id }) => id)).toEqual([waiting]);
  expect(await batches.unstarted(1_000, 10)).toEqual([]);
});
