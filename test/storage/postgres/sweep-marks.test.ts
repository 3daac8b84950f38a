import { randomBytes } from 'node:crypto';
import { batchIdFromBytes, uploadIdFromBytes } from '../../../core/names/ids';
import { fileKey, uploadPartKey } from '../../../core/names/object-names';
import { createSweepRows, type SweepRows } from '../../../storage/postgres/sweep';
import { useDatabase } from '../../support/postgres';
import { insertBatch } from '../../support/rows';

/** The marks of the sweep, and the objects that it treats as unowned. */

const NOW_SEC = Math.floor(Date.now() / 1000);
const HOUR_SEC = 3_600;

const database = useDatabase('batches', 'uploads', 'upload_parts', 'files', 'idempotency_keys');
let rows: SweepRows;

beforeAll(() => {
  rows = createSweepRows(database.pool);
});

describe('a batch whose scratch is removed', () => {
  const page = { endedBeforeSec: NOW_SEC, afterSeq: 0, limit: 10 };
  const clearable = async () => (await rows.batchesToClear(page)).map(({ id }) => id);

  it('is not listed again, and no other batch is affected', async () => {
    const ended = { status: 'completed', completed_at: NOW_SEC - HOUR_SEC };
    const [first, second, third] = [
      await insertBatch(database.pool, ended),
      await insertBatch(database.pool, ended),
      await insertBatch(database.pool, ended),
    ];
    expect(await clearable()).toEqual([first, second, third]);
    await rows.markCleared([first, third]);
    expect(await clearable()).toEqual([second]);
    await rows.markCleared([]);
    expect(await clearable()).toEqual([second]);
    // Its row is removed later, after its own retention.
    expect((await rows.batchesToRemove(page)).map(({ id }) => id)).toEqual([first, second, third]);
  });
});

async function insertUpload(columns: Record<string, unknown>): Promise<string> {
  const row: Record<string, unknown> = {
    ...{ id: uploadIdFromBytes(randomBytes(16)), tenant: 't', filename: 'f', purpose: 'batch' },
    ...{ mime_type: 'x', bytes: 1, created_at: NOW_SEC - 9, expires_at: NOW_SEC + HOUR_SEC },
    ...columns,
  };
  const names = Object.keys(row);
  const places = names.map((_, i) => `$${i + 1}`).join();
  const text = `insert into uploads (${names.join()}) values (${places})`;
  await database.pool.query(text, Object.values(row));
  return String(row['id']);
}

describe('a part', () => {
  it.each([
    ['pending', {}, false],
    ['expired', { expires_at: NOW_SEC - 9 }, false],
    // The sweep of ended uploads removes these parts, after a margin for a join in flight.
    ['cancelled', { status: 'cancelled', ended_at: NOW_SEC - 9 }, false],
    ['completed', { status: 'completed', ended_at: NOW_SEC - 9 }, false],
    ['cancelled and cleared', { status: 'cancelled', parts_gone_at: NOW_SEC }, true],
    ['completed and cleared', { status: 'completed', parts_gone_at: NOW_SEC }, true],
  ])('of an upload has an owner unless cleared: %s', async (_what, columns, isUnowned) => {
    const key = uploadPartKey(await insertUpload(columns), 'part_1');
    const gone = uploadPartKey(uploadIdFromBytes(randomBytes(16)), 'part_1');
    expect(await rows.unownedKeys([key, gone])).toEqual(isUnowned ? [key, gone] : [gone]);
  });

  it('has an owner until its upload is marked, and marking affects no other', async () => {
    const ended = { status: 'cancelled', ended_at: NOW_SEC - 2 * HOUR_SEC };
    const [first, second] = [await insertUpload(ended), await insertUpload(ended)];
    const keys = [first, second].map((id) => uploadPartKey(id, 'part_1'));
    expect(await rows.unownedKeys(keys)).toEqual([]);
    await rows.markUploadsCleared([first]);
    expect(await rows.unownedKeys(keys)).toEqual([keys[0]]);
    expect((await rows.uploadsToClear(10)).map(({ id }) => id)).toEqual([second]);
  });
});

it('counts the object of a completion as owned while the row of its upload exists', async () => {
  const key = fileKey('t', 'file-joined');
  const id = await insertUpload({ joined_keys: [key], parts_gone_at: NOW_SEC });
  expect(await rows.unownedKeys([key])).toEqual([]);
  await database.pool.query('delete from uploads where id = $1', [id]);
  expect(await rows.unownedKeys([key])).toEqual([key]);
});

it('counts objects that are neither files nor parts as owned', async () => {
  const others = ['files/t/own', 'other/thing', `batches/${batchIdFromBytes(randomBytes(16))}/x`];
  expect(await rows.unownedKeys(others)).toEqual([]);
  expect(await rows.unownedKeys([])).toEqual([]);
});

it.each([
  ['removeIdempotencyKeys', 'idempotency_keys'],
  ['removeUploads', 'uploads'],
] as const)('%s removes only rows that are older than a day', async (remove, table) => {
  const ages = [24 * HOUR_SEC - 60, 24 * HOUR_SEC + 60, 25 * HOUR_SEC];
  for (const ageSec of ages) {
    const ended = { status: 'cancelled', ended_at: NOW_SEC - ageSec, parts_gone_at: NOW_SEC };
    await insertUpload(ended);
    await database.pool.query(
      `insert into idempotency_keys (tenant, route, key, fingerprint, created_at)
       values ('t', 'r', $1, '', to_timestamp($2))`,
      [String(ageSec), NOW_SEC - ageSec],
    );
  }
  expect(await rows[remove](1)).toBe(1);
  expect(await rows[remove](10)).toBe(1);
  expect(await rows[remove](10)).toBe(0);
  expect((await database.pool.query(`select 1 from ${table}`)).rows).toHaveLength(1);
});
