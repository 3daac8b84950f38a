import { randomBytes } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { SweepKind, SweepPageResult } from '../../../activities/sweep/contract';
import { createSweepPage } from '../../../activities/sweep/sweep';
import { batchIdFromBytes, fileIdFromBytes, resultFileId } from '../../../core/names/ids';
import {
  batchRecordKey,
  fileKey,
  manifestKey,
  modelMapKey,
  sealKey,
} from '../../../core/names/object-names';
import { createSweepRows } from '../../../storage/postgres/sweep';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';
import { useDatabase } from '../../support/postgres';
import { insertBatch, insertFile } from '../../support/rows';

const DAY_SEC = 24 * 3600;
const NOW_SEC = Math.floor(Date.now() / 1000);

const database = useDatabase('batches', 'files');
let store: MemoryStore;
/** Searches that found a batch without its row. */
let found = 0;

beforeEach(async () => {
  store = createMemoryStore();
  found = 0;
});

/** Sweeps the first page of one kind. Returns how many items it removed. */
async function sweep(kind: SweepKind, rows = createSweepRows(database.pool)): Promise<number> {
  const sweepPage = createSweepPage({
    ...{ rows, store, observer: { removed: () => undefined, rowsLost: () => void found++ } },
    retention: { scratch: DAY_SEC * 1000, batches: 90 * DAY_SEC * 1000 },
  });
  // The sweep reports lost rows as an error, which is expected here.
  const logger = new DefaultLogger('ERROR', () => undefined);
  const environment = new MockActivityEnvironment({}, { logger });
  const page: SweepPageResult = await environment.run(sweepPage, { kind, afterSeq: 0 });
  return page.removed;
}

const put = (key: string) => store.putIfAbsent(key, Buffer.from('bytes'));
const keys = () => [...store.objects.keys()].sort();

async function ids(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>('select id from batches');
  return rows.map(({ id }) => id);
}

describe('a batch that has a record but no row, because the database is older than the store', () => {
  const lost = (): Promise<unknown> => put(batchRecordKey(batchIdFromBytes(randomBytes(16))));

  it('keeps the bytes of deleted files, because it may need them', async () => {
    const { key } = await insertFile(database.pool, { deleted_at: NOW_SEC - 60 });
    await put(key);
    await lost();
    expect(await sweep('files')).toBe(0);
    expect(store.objects.has(key)).toBe(true);
    expect(found).toBe(1);
  });

  it('keeps objects that no row knows, until its row is back', async () => {
    const id = batchIdFromBytes(randomBytes(16));
    const input = fileKey('t', fileIdFromBytes(randomBytes(16)));
    const output = fileKey('t', resultFileId(id, 'output'));
    for (const key of [input, output, batchRecordKey(id)]) await put(key);
    for (const key of keys()) store.writtenAtMs.set(key, Date.now() - 9 * DAY_SEC * 1000);
    expect(await sweep('temporary')).toBe(0);
    await insertBatch(database.pool, { id, input_object_key: input });
    found = 0;
    expect(await sweep('temporary')).toBe(0);
    expect(found).toBe(0);
    expect(keys()).toEqual([batchRecordKey(id), input, output].sort());
    await database.pool.query(`update batches set status = 'failed' where id = $1`, [id]);
    expect(await sweep('temporary')).toBe(1);
    expect(keys()).toEqual([batchRecordKey(id), output].sort());
  });

  it('is not mistaken for one that retention removes: its record goes before its row', async () => {
    const id = await insertBatch(database.pool, {
      status: 'completed',
      completed_at: NOW_SEC - 100 * DAY_SEC,
    });
    await put(batchRecordKey(id));
    await put(manifestKey(id));
    const rows = createSweepRows(database.pool);
    const removeBatches = async (): Promise<void> => {
      expect(keys()).toEqual([]);
      throw new Error('killed');
    };
    await expect(sweep('batches', { ...rows, removeBatches })).rejects.toThrow('killed');
    expect(await ids()).toEqual([id]);
  });

  it('loses its record together with its journal', async () => {
    const id = await insertBatch(database.pool, {
      status: 'completed',
      completed_at: NOW_SEC - 2 * DAY_SEC,
      output_file_id: 'file-o',
    });
    const seal = sealKey(id, 'm', { from: 0, to: 10 }, 'aaaaaaaaaaaaaaaa');
    for (const key of [modelMapKey(id), manifestKey(id), seal, batchRecordKey(id)]) await put(key);
    await sweep('scratch');
    expect(keys()).toEqual([manifestKey(id), modelMapKey(id)]);
  });
});
