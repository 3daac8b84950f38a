import { createBatchRepository } from '../../../../storage/postgres/batches/repository';
import { useDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';

const database = useDatabase();

const newBatch = () =>
  insertBatch(database.pool, { tenant: 'ann', created_at: 1_000, expires_at: 2_000 });

it('gives the row one cause, however a cancel and an expiry race', async () => {
  const batches = createBatchRepository(database.pool);
  for (let round = 0; round < 20; round++) {
    const id = await newBatch();
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
  const id = await newBatch();
  expect(await batches.claimCancel(id, 'bob', 1_500)).toBeNull();
  expect(await batches.get(id, 'bob')).toBeNull();
  expect(await batches.get(id, 'ann')).toMatchObject({ id, stopCause: null });
});

it('lists as unstarted the old open batches that are not marked', async () => {
  const batches = createBatchRepository(database.pool);
  await database.pool.query('delete from batches');
  const [waiting, marked, ended] = [await newBatch(), await newBatch(), await newBatch()];
  await batches.markStarted(marked);
  await database.pool.query(`update batches set status = 'failed' where id = $1`, [ended]);
  expect((await batches.unstarted(1_001, 10)).map(({ id }) => id)).toEqual([waiting]);
  expect(await batches.unstarted(1_000, 10)).toEqual([]);
});
