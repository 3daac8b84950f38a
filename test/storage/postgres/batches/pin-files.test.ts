import { pinFiles } from '../../../../storage/postgres/batches/pin-files';
import { createFileRepository } from '../../../../storage/postgres/files';
import { createSweepRows } from '../../../../storage/postgres/sweep';
import { useDatabase } from '../../../support/postgres';
import { insertBatch, insertFile } from '../../../support/rows';

/** Files that requests of a batch name, from ingestion to the sweep. */

const database = useDatabase('batches', 'files', 'batch_files', 'removed_batches');
const NOW_SEC = Math.floor(Date.now() / 1000);

async function pinned(batchId: string, ids: readonly string[]): Promise<string[]> {
  return (await pinFiles(database.pool, batchId, ids)).map(({ id }) => id);
}

async function emptied(): Promise<string[]> {
  return (await createSweepRows(database.pool).filesToEmpty(10)).map(({ id }) => id);
}

const hide = (id: string) =>
  createFileRepository(database.pool).hide({ id, tenant: 't', nowSec: NOW_SEC });
const end = (id: string) =>
  database.pool.query(`update batches set status = 'completed', completed_at = 1 where id = $1`, [
    id,
  ]);

it('finds object, size and name of a file with any purpose', async () => {
  const batchId = await insertBatch(database.pool);
  const over = { purpose: 'user_data', filename: 'a.wav', bytes: 9 };
  const { id, key } = await insertFile(database.pool, over);
  const found = await pinFiles(database.pool, batchId, [id, id, 'file-unknown']);
  expect(found).toEqual([{ id, objectKey: key, bytes: 9, filename: 'a.wav' }]);
});

it.each([
  ['of another tenant', { tenant: 'other' }],
  ['that is deleted', { deleted_at: 1 }],
  ['that has expired', { expires_at: NOW_SEC - 1 }],
  ['that is a result of a batch', { purpose: 'batch_output' }],
])('does not find a file %s', async (_, over) => {
  const batchId = await insertBatch(database.pool);
  const { id } = await insertFile(database.pool, over);
  expect(await pinned(batchId, [id])).toEqual([]);
  expect((await database.pool.query('select 1 from batch_files')).rows).toEqual([]);
});

it('finds a file again that was deleted after it was pinned', async () => {
  const batchId = await insertBatch(database.pool);
  const { id } = await insertFile(database.pool);
  await pinned(batchId, [id]);
  await hide(id);
  expect(await pinned(batchId, [id])).toEqual([id]);
  expect(await pinned(await insertBatch(database.pool), [id])).toEqual([]);
});

it('keeps the bytes of a deleted or expired file until the last batch that names it has ended', async () => {
  const batches = [await insertBatch(database.pool), await insertBatch(database.pool)];
  const deleted = await insertFile(database.pool);
  const expired = await insertFile(database.pool, { expires_at: NOW_SEC + 3_600 });
  for (const batchId of batches) await pinned(batchId, [deleted.id, expired.id]);
  await hide(deleted.id);
  await database.pool.query('update files set expires_at = 1 where id = $1', [expired.id]);
  expect(await emptied()).toEqual([]);
  await end(batches[0] ?? '');
  expect(await emptied()).toEqual([]);
  await end(batches[1] ?? '');
  expect(await emptied()).toEqual([deleted.id, expired.id]);
});

it('counts the object of a file without a row as owned while a batch that names it is open', async () => {
  const batchId = await insertBatch(database.pool);
  const { id, key } = await insertFile(database.pool);
  await pinned(batchId, [id]);
  await database.pool.query('delete from files');
  const rows = createSweepRows(database.pool);
  expect(await rows.unownedKeys([key])).toEqual([]);
  await end(batchId);
  expect(await rows.unownedKeys([key])).toEqual([key]);
});

it('forgets which files a batch names when its row is removed', async () => {
  const batchId = await insertBatch(database.pool);
  await pinned(batchId, [(await insertFile(database.pool)).id]);
  const rows = createSweepRows(database.pool);
  await rows.removeBatches([batchId]);
  expect((await database.pool.query('select 1 from batch_files')).rows).toHaveLength(1);
  await end(batchId);
  await rows.removeBatches([batchId]);
  expect((await database.pool.query('select 1 from batch_files')).rows).toEqual([]);
});
