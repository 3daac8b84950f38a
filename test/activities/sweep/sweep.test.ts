import { randomBytes } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createSweepPage } from '../../../activities/sweep/sweep';
import type { SweepKind, SweepPageResult } from '../../../activities/sweep/contract';
import { OPEN_STATUSES } from '../../../core/batch/status';
import {
  batchIdFromBytes,
  fileIdFromBytes,
  partIdFromBytes,
  resultFileId,
  uploadIdFromBytes,
} from '../../../core/names/ids';
import {
  batchPrefix,
  fileKey,
  manifestKey,
  modelMapKey,
  planKey,
  sealKey,
  uploadPartKey,
} from '../../../core/names/object-names';
import { createSweepRows } from '../../../storage/postgres/sweep';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';
import { useDatabase } from '../../support/postgres';
import { insertBatch, insertFile } from '../../support/rows';

const DAY_SEC = 24 * 3600;
const NOW_SEC = Math.floor(Date.now() / 1000);
const NONCE = 'aaaaaaaaaaaaaaaa';

const database = useDatabase('batches', 'files', 'chunk_progress', 'removed_batches');
let store: MemoryStore;
let removed: [SweepKind, number][];
const rowsLost = () => undefined;

beforeEach(async () => {
  store = createMemoryStore();
  removed = [];
});

function deps() {
  return {
    rows: createSweepRows(database.pool),
    store,
    retention: { scratch: DAY_SEC * 1000, batches: 90 * DAY_SEC * 1000 },
    observer: { removed: (...one: [SweepKind, number]) => void removed.push(one), rowsLost },
  };
}

async function sweep(kind: SweepKind, over: Partial<ReturnType<typeof deps>> = {}) {
  const run = createSweepPage({ ...deps(), ...over });
  const logger = new DefaultLogger('ERROR');
  let total = 0;
  for (let afterSeq: number | null = 0, page = 0; afterSeq !== null && page < 50; page++) {
    const environment = new MockActivityEnvironment({}, { logger });
    const result: SweepPageResult = await environment.run(run, { kind, afterSeq });
    total += result.removed;
    afterSeq = result.nextSeq;
  }
  return total;
}

const put = (key: string) => store.putIfAbsent(key, Buffer.from('bytes'));
const keys = () => [...store.objects.keys()].sort();

async function ids(table: 'files' | 'batches'): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    `select id from ${table} order by seq`,
  );
  return rows.map(({ id }) => id);
}

describe('files', () => {
  it.each([
    ['were deleted a moment ago lose their bytes', { deleted_at: NOW_SEC }, true],
    ['have expired lose their bytes', { expires_at: NOW_SEC - 600 }, true],
    ['expired seconds ago keep them, as clocks differ', { expires_at: NOW_SEC - 5 }, false],
    ['have not expired keep their bytes', { expires_at: NOW_SEC + 600 }, false],
    ['never expire keep their bytes', {}, false],
  ])('that %s', async (_what, columns, goes) => {
    const { id, key } = await insertFile(database.pool, columns);
    await put(key);
    expect(await sweep('files')).toBe(goes ? 1 : 0);
    expect(keys()).toEqual(goes ? [] : [key]);
    expect(await sweep('files')).toBe(0);
    expect(await ids('files')).toEqual([id]);
  });

  it.each(OPEN_STATUSES)('stay while a batch that is %s needs them', async (status) => {
    const { id, key } = await insertFile(database.pool, { deleted_at: NOW_SEC - 9 * DAY_SEC });
    await put(key);
    const pin = { input_file_id: id, input_object_key: key };
    const batch = await insertBatch(database.pool, { status, ...pin });
    await insertBatch(database.pool, { status: 'completed', ...pin });
    expect(await sweep('files')).toBe(0);
    expect(await sweep('file_rows')).toBe(0);
    expect(keys()).toEqual([key]);
    await database.pool.query(`update batches set status = 'failed' where id = $1`, [batch]);
    expect(await sweep('files')).toBe(1);
    expect(keys()).toEqual([]);
  });

  it('lose their row a day after their bytes, when no list needs them as a cursor', async () => {
    const old = await insertFile(database.pool, { deleted_at: NOW_SEC - 2 * DAY_SEC });
    const young = await insertFile(database.pool, { deleted_at: NOW_SEC - 60 });
    const alive = await insertFile(database.pool, { expires_at: NOW_SEC + DAY_SEC });
    expect(await sweep('file_rows')).toBe(0);
    expect(await ids('files')).toEqual([old.id, young.id, alive.id]);
    await sweep('files');
    expect(await sweep('file_rows')).toBe(1);
    expect(await ids('files')).toEqual([young.id, alive.id]);
  });

  it('are removed by the next sweep if the store failed half-way', async () => {
    const files = [];
    for (let i = 0; i < 20; i++) {
      files.push(await insertFile(database.pool, { deleted_at: NOW_SEC - 2 * DAY_SEC }));
    }
    for (const { key } of files) await put(key);
    let deletes = 0;
    const failing = {
      ...store,
      delete: (key: string) =>
        ++deletes > 10 ? Promise.reject(new Error('away')) : store.delete(key),
    };
    await expect(sweep('files', { store: failing })).rejects.toThrow('away');
    expect(await sweep('file_rows')).toBe(0);
    expect(await sweep('files')).toBe(20);
    expect(keys()).toEqual([]);
    expect(await sweep('file_rows')).toBe(20);
  });
});

/** Writes the objects that a batch leaves behind. */
async function putBatch(id: string): Promise<void> {
  await put(modelMapKey(id));
  await put(manifestKey(id));
  await put(planKey(id, NONCE, 'm'));
  await put(`${batchPrefix(id)}journal/m/0000000000-0000000009.${NONCE}.seg`);
  await put(sealKey(id, 'm', { from: 0, to: 10 }, NONCE));
}

describe('scratch', () => {
  const ended = (daysAgo: number, over: Record<string, unknown> = {}) =>
    insertBatch(database.pool, {
      status: 'completed',
      completed_at: NOW_SEC - daysAgo * DAY_SEC,
      output_file_id: 'file-o',
      ...over,
    });

  it('of delivered batches is removed after its retention, except manifest and model map', async () => {
    const old = await ended(2);
    const young = await ended(0.5);
    await putBatch(old);
    await putBatch(young);
    expect(await sweep('scratch')).toBe(3);
    expect(keys().filter((key) => key.startsWith(batchPrefix(old)))).toEqual([
      manifestKey(old),
      modelMapKey(old),
    ]);
    expect(keys().filter((key) => key.startsWith(batchPrefix(young)))).toHaveLength(5);
    expect(await ids('batches')).toEqual([old, young]);
  });

  it('of a batch whose finalization was given up stays, because it holds the answers', async () => {
    const given = await ended(9, {
      status: 'failed',
      completed_at: null,
      failed_at: NOW_SEC - 9 * DAY_SEC,
      output_file_id: null,
    });
    await putBatch(given);
    expect(await sweep('scratch')).toBe(0);
    expect(keys()).toHaveLength(5);
  });

  it.each(OPEN_STATUSES)('of a batch that is %s is never removed, at any age', async (status) => {
    const id = await insertBatch(database.pool, {
      status,
      created_at: 1,
      expires_at: 2,
      updated_at: new Date(0),
    });
    await putBatch(id);
    for (const kind of ['files', 'scratch', 'batches', 'progress'] as const) await sweep(kind);
    expect(keys()).toHaveLength(5);
    expect(await ids('batches')).toEqual([id]);
  });

  it('of more batches than a page holds is removed in one sweep', async () => {
    for (let i = 0; i < 45; i++) await putBatch(await ended(2));
    expect(await sweep('scratch')).toBe(45 * 3);
    expect(removed.reduce((sum, [, count]) => sum + count, 0)).toBe(45 * 3);
    expect(await sweep('scratch')).toBe(0);
  });
});

describe('batches', () => {
  it('are removed after their retention with everything below their prefix', async () => {
    const old = await insertBatch(database.pool, {
      status: 'failed',
      failed_at: NOW_SEC - 91 * DAY_SEC,
    });
    const young = await insertBatch(database.pool, {
      status: 'expired',
      expired_at: NOW_SEC - 89 * DAY_SEC,
    });
    await putBatch(old);
    await putBatch(young);
    const forgotten = `insert into removed_batches values ('batch_old', 't', 1, 1, $1)`;
    await database.pool.query(forgotten, [NOW_SEC - DAY_SEC]);
    expect(await sweep('batches')).toBe(1);
    expect(await ids('batches')).toEqual([young]);
    const { rows: places } = await database.pool.query('select id from removed_batches');
    expect(places).toEqual([{ id: old }]);
    expect(keys().every((key) => key.startsWith(batchPrefix(young)))).toBe(true);
    expect(keys()).toHaveLength(5);
  });

  it('keep their row if their objects could not be removed', async () => {
    const old = await insertBatch(database.pool, { status: 'failed', failed_at: 1 });
    await putBatch(old);
    const failing = { ...store, delete: () => Promise.reject(new Error('away')) };
    await expect(sweep('batches', { store: failing })).rejects.toThrow('away');
    expect(await ids('batches')).toEqual([old]);
  });
});

describe('the rest', () => {
  it('removes progress of batches that have ended or are removed, once no worker can be at work on it', async () => {
    const open = await insertBatch(database.pool, { status: 'in_progress' });
    const done = await insertBatch(database.pool, { status: 'completed' });
    const touch = (batch: string, from: number, ago: string) =>
      database.pool.query(
        `insert into chunk_progress (batch_id, safe_model, from_pos, to_pos, epoch, worker, touched_at)
         values ($1, 'm', $2, 9, 1, 'w', now() - $3::interval)`,
        [batch, from, ago],
      );
    await touch(open, 0, '5 days');
    await touch(done, 0, '5 days');
    await touch(done, 1, '5 minutes');
    await touch('batch_gone', 0, '2 hours');
    expect(await sweep('progress')).toBe(2);
    const { rows } = await database.pool.query<{ batch_id: string }>(
      'select batch_id from chunk_progress order by from_pos',
    );
    expect(rows.map((row) => row.batch_id)).toEqual([open, done]);
  });

  it('makes the store remove the temporary files of crashed writers', async () => {
    const removeUnfinished = () => Promise.resolve(3);
    expect(await sweep('temporary', { store: { ...store, removeUnfinished } })).toBe(3);
    expect(removed).toEqual([['temporary', 3]]);
  });
});

describe('objects that never got a row', () => {
  const random = () => randomBytes(16);
  const putOld = async (key: string, ageMs = 25 * 3_600_000) => {
    await put(key);
    store.writtenAtMs.set(key, Date.now() - ageMs);
    return key;
  };
  beforeEach(() => database.pool.query('truncate uploads, upload_parts'));

  it.each([
    ['a file', () => fileKey('t', fileIdFromBytes(random()))],
    ['a result', () => fileKey('t', resultFileId(batchIdFromBytes(random()), 'output'))],
    ['a part', () => uploadPartKey(uploadIdFromBytes(random()), partIdFromBytes(random()))],
  ])('are removed when they are old, and not before: %s', async (_what, key) => {
    const young = await putOld(key(), 23 * 3_600_000);
    await putOld(key());
    expect(await sweep('temporary')).toBe(1);
    expect(keys()).toEqual([young]);
  });

  it('do not include objects of a file, a batch or an open upload, or of another kind', async () => {
    const file = await insertFile(database.pool, {});
    const hidden = await insertFile(database.pool, { deleted_at: NOW_SEC - 9 * DAY_SEC });
    const batches = [
      await insertBatch(database.pool, { status: 'finalizing' }),
      await insertBatch(database.pool, { status: 'failed', failed_at: NOW_SEC - 9 * DAY_SEC }),
    ];
    await insertUpload('upload_open', { joined_keys: ['files/t/file-joined'] });
    const owned = [
      ...[file.key, hidden.key, 'files/t/file-joined', 'uploads/upload_open/part_1'],
      ...batches.map((id) => fileKey('t', resultFileId(id, 'output'))),
      ...batches.map((id) => manifestKey(id)),
      ...['files/t/own', 'other/thing', 'batches/batch_gone/manifest.json'],
    ];
    for (const key of owned) await putOld(key);
    expect(await sweep('temporary')).toBe(0);
    expect(keys()).toEqual([...owned].sort());
  });

  it('include parts that arrived after their upload had been cleared', async () => {
    await insertUpload('upload_a', { parts_gone_at: NOW_SEC - 600 });
    await putOld('uploads/upload_a/part_1');
    expect(await sweep('temporary')).toBe(1);
    expect(keys()).toEqual([]);
  });

  it('are all removed, even if there are more than a thousand', async () => {
    const { key } = await insertFile(database.pool, {});
    await putOld(key);
    for (let i = 0; i < 1_200; i++) await putOld(fileKey('t', fileIdFromBytes(random())));
    expect(await sweep('temporary')).toBe(1_200);
    expect(keys()).toEqual([key]);
  });

  it('stay for an hour even if scratch has no retention', async () => {
    const retention = { scratch: 0, batches: 0 };
    const young = await putOld(fileKey('t', fileIdFromBytes(random())), 3_000_000);
    await putOld(fileKey('t', fileIdFromBytes(random())), 4_000_000);
    expect(await sweep('temporary', { retention })).toBe(1);
    expect(keys()).toEqual([young]);
  });

  it('are searched for once an hour', async () => {
    const run = createSweepPage(deps());
    const page = () =>
      new MockActivityEnvironment({}).run(run, { kind: 'temporary', afterSeq: 0 } as const);
    for (const removes of [1, 0]) {
      await putOld(fileKey('t', fileIdFromBytes(random())));
      expect(await page()).toEqual({ removed: removes, nextSeq: null });
    }
  });
});

function insertUpload(id: string, columns: Record<string, unknown>) {
  const row = {
    ...{ id, tenant: 'default', filename: 'f', purpose: 'batch', mime_type: 'x', bytes: 1 },
    ...{ created_at: NOW_SEC - 9 * DAY_SEC, expires_at: NOW_SEC - 9 * DAY_SEC + 3_600 },
    ...columns,
  };
  const names = Object.keys(row);
  const places = names.map((_, i) => `$${i + 1}`).join();
  const text = `insert into uploads (${names.join()}) values (${places})`;
  return database.pool.query(text, Object.values(row));
}

describe('uploads', () => {
  beforeEach(() => database.pool.query('truncate uploads, upload_parts, idempotency_keys'));

  it.each([
    ['are open keep their parts', { expires_at: NOW_SEC + 600 }, false],
    ['expired a moment ago keep their parts', { expires_at: NOW_SEC - 60 }, false],
    ['expired long ago lose their parts', {}, true],
    ['were cancelled lose their parts', { status: 'cancelled', ended_at: NOW_SEC - 4_000 }, true],
    ['were just cancelled keep their parts', { status: 'cancelled', ended_at: NOW_SEC - 4 }, false],
  ])('that %s', async (_what, columns, goes) => {
    await insertUpload('upload_a', columns);
    await put('uploads/upload_a/part_1');
    await put('uploads/upload_b/part_2');
    expect(await sweep('uploads')).toBe(goes ? 1 : 0);
    expect(keys()).toEqual([
      ...(goes ? [] : ['uploads/upload_a/part_1']),
      'uploads/upload_b/part_2',
    ]);
    expect(await sweep('uploads')).toBe(0);
  });

  it('keep their file, and lose what failed completions left behind', async () => {
    const { id, key } = await insertFile(database.pool, {});
    await insertUpload('upload_a', {
      ...{ status: 'completed', ended_at: NOW_SEC - 4_000, file_id: id },
      joined_keys: ['files/t/lost', key],
    });
    for (const name of [key, 'files/t/lost']) await put(name);
    await sweep('uploads');
    expect(keys()).toEqual([key]);
  });

  it('lose their rows a day after they were cleared', async () => {
    await insertUpload('upload_a', { parts_gone_at: NOW_SEC });
    await insertUpload('upload_b', { parts_gone_at: NOW_SEC, ended_at: NOW_SEC - 4_000 });
    await database.pool.query(
      `insert into upload_parts values ('part_1', 'upload_a', 1, '\\x00', 1), ('part_2', 'upload_b', 1, '\\x00', 1)`,
    );
    expect(await sweep('upload_rows')).toBe(1);
    const { rows } = await database.pool.query('select id from upload_parts');
    expect(rows).toEqual([{ id: 'part_2' }]);
  });
});

it('removes idempotency keys after a day', async () => {
  await database.pool.query(
    `insert into idempotency_keys (tenant, route, key, fingerprint, created_at) values
       ('t', 'r', 'old', '', now() - interval '25 hours'), ('t', 'r', 'new', '', now())`,
  );
  expect(await sweep('idempotency_keys')).toBe(1);
  const { rows } = await database.pool.query('select key from idempotency_keys');
  expect(rows).toEqual([{ key: 'new' }]);
});
