import { recordBatch } from '../../activities/ingest/record-batch';
import { batchIdFromBytes } from '../../core/names/ids';
import {
  batchRecordKey,
  inputFilesKey,
  manifestKey,
  modelMapKey,
  sealKey,
} from '../../core/names/object-names';
import { encodeInputFiles } from '../../core/plan/input-files';
import { encodeModelMap } from '../../core/plan/model-map';
import { createBatchRepository } from '../../storage/postgres/batches/repository';
import { createRestoredRows } from '../../storage/postgres/restored-rows';
import { restoreRows } from '../../storage/restore';
import { createMemoryStore, type MemoryStore } from '../support/memory-store';
import { useDatabase } from '../support/postgres';
import { insertBatch, insertFile } from '../support/rows';

const database = useDatabase('batches', 'files', 'batch_files');
let store: MemoryStore;

beforeEach(async () => {
  store = createMemoryStore();
});

const put = (key: string) => store.putIfAbsent(key, Buffer.from('bytes'));
const restore = (dryRun = false) =>
  restoreRows({ rows: createRestoredRows(database.pool), store }, { dryRun });

/** Inserts a batch, writes its record as ingestion does, and loses the row. Returns it as it was. */
async function loseBatch(over: Record<string, unknown> = {}) {
  const batches = createBatchRepository(database.pool);
  const id = await insertBatch(database.pool, over);
  const row = await batches.find(id);
  if (row === null) throw new Error('no row');
  await recordBatch(store, row);
  await database.pool.query('delete from batches where id = $1', [id]);
  return { id, row, find: () => batches.find(id) };
}

async function nextEpoch(): Promise<number> {
  const { rows } = await database.pool.query<{ n: string }>(`select nextval('chunk_epoch') as n`);
  return Number(rows[0]?.n);
}

it('inserts the row of a batch exactly as it was created', async () => {
  const { id, row, find } = await loseBatch({
    tenant: 'Ünïcode/tenant',
    input_file_id: 'file-1',
    input_object_key: 'files/t/file-1',
    input_bytes: 123,
    metadata: '{"b":"2","a":"1"}',
    output_expires_after: 7_200,
  });
  expect((await restore()).batches).toEqual([{ id, fate: 'continues' }]);
  expect(await find()).toEqual(row);
  expect(JSON.stringify((await find())?.metadata)).toBe('{"b":"2","a":"1"}');
  expect((await restore()).batches).toEqual([]);
});

it('ends a batch whose pass-through headers are lost, unless all that is left is to deliver', async () => {
  const sending = await loseBatch({ passes_headers: true });
  const closed = await loseBatch({ passes_headers: true });
  await put(manifestKey(closed.id));
  await put(sealKey(closed.id, 'm', { from: 0, to: 10 }, 'aaaaaaaaaaaaaaaa'));
  const { batches } = await restore();
  expect(new Map(batches.map(({ id, fate }) => [id, fate]))).toEqual(
    new Map([
      [sending.id, 'ends'],
      [closed.id, 'continues'],
    ]),
  );
  expect((await sending.find())?.stopCause).toBe('failed');
  expect((await closed.find())?.stopCause).toBeNull();
});

it('pins the files that requests of a batch name', async () => {
  const { id } = await loseBatch();
  const map = { version: 1, nonce: 'n', line_count: 1, unrouted: {} } as const;
  const plans = { model_to_safe: {}, safe_to_model: {}, entries: {} };
  await store.putIfAbsent(modelMapKey(id), encodeModelMap({ ...map, ...plans }));
  const file = { key: 'files/t/file-1', bytes: 1, filename: 'a.wav' };
  const files = encodeInputFiles(new Map([['file-1', file]]));
  await store.putIfAbsent(inputFilesKey(id, 'n'), files);
  const pins = async () => (await database.pool.query('select * from batch_files')).rows;
  await restore(true);
  expect(await pins()).toEqual([]);
  await restore();
  expect(await pins()).toEqual([{ batch_id: id, file_id: 'file-1' }]);
});

it('does not start a batch again that ended and whose journal was removed', async () => {
  const { id, find } = await loseBatch();
  await put(manifestKey(id));
  expect((await restore()).batches).toEqual([{ id, fate: 'too_old' }]);
  expect(await find()).toBeNull();
  expect(store.objects.has(batchRecordKey(id))).toBe(false);
});

it('leaves batches alone that have a row', async () => {
  const { id, row } = await loseBatch();
  await insertBatch(database.pool, { id, status: 'completed', completed_at: row.createdAtSec });
  expect((await restore()).batches).toEqual([]);
  const { rows } = await database.pool.query('select status from batches');
  expect(rows).toEqual([{ status: 'completed' }]);
});

it('notes files as deleted whose bytes are gone, and no others', async () => {
  const kept = await insertFile(database.pool);
  const gone = await insertFile(database.pool);
  await put(kept.key);
  expect((await restore()).filesGone).toBe(1);
  const { rows } = await database.pool.query(
    'select id from files where deleted_at is null and bytes_gone_at is null',
  );
  expect(rows).toEqual([{ id: kept.id }]);
  expect(gone.id).not.toBe(kept.id);
  expect((await restore()).filesGone).toBe(0);
});

it('gives later attempts higher epochs than any lost one', async () => {
  const before = await nextEpoch();
  await restore();
  expect(await nextEpoch()).toBeGreaterThan(before + 1_000_000);
});

it('changes nothing in a dry run', async () => {
  const { id, find } = await loseBatch();
  const tooOld = await loseBatch();
  await put(manifestKey(tooOld.id));
  await insertFile(database.pool);
  const before = await nextEpoch();
  const report = await restore(true);
  expect(report.batches).toHaveLength(2);
  expect(report.filesGone).toBe(1);
  expect(await find()).toBeNull();
  expect(store.objects.has(batchRecordKey(tooOld.id))).toBe(true);
  expect(await nextEpoch()).toBe(before + 1);
  expect((await restore()).batches).toContainEqual({ id, fate: 'continues' });
});

it('keeps a record that it cannot read, reports its batch, and brings back all others', async () => {
  const ids = ['{"version":2}', 'no JSON'].map((text, n) => {
    // The first and the last in key order.
    const id = batchIdFromBytes(Buffer.alloc(16, n * 255));
    store.objects.set(batchRecordKey(id), Buffer.from(text));
    return id;
  });
  const { id, find } = await loseBatch();
  const { batches } = await restore();
  expect(new Map(batches.map((batch) => [batch.id, batch.fate]))).toEqual(
    new Map([...ids.map((one) => [one, 'unreadable'] as const), [id, 'continues']]),
  );
  expect(await find()).not.toBeNull();
  expect(ids.filter((one) => !store.objects.has(batchRecordKey(one)))).toEqual([]);
});

it('leaves out a batch whose record another restore removes meanwhile', async () => {
  const { id } = await loseBatch();
  const rows = createRestoredRows(database.pool);
  const withoutRow = async (ids: readonly string[]) => {
    const lost = await rows.withoutRow(ids);
    store.objects.delete(batchRecordKey(id));
    return lost;
  };
  const report = await restoreRows({ rows: { ...rows, withoutRow }, store }, { dryRun: false });
  expect(report.batches).toEqual([]);
});

it('lets no job be created at a provider for ten minutes', async () => {
  const heldMinutes = async () => {
    const { rows } = await database.pool.query<{ minutes: number | null }>(
      `select round(extract(epoch from creates_held_until - now()) / 60)::integer as minutes
       from installation`,
    );
    return rows[0]?.minutes;
  };
  await database.pool.query(`insert into installation (store_id) values ('s')`);
  await restore(true);
  expect(await heldMinutes()).toBeNull();
  await restore();
  expect(await heldMinutes()).toBe(10);
});
