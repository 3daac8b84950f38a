import { MockActivityEnvironment } from '@temporalio/testing';
import { createSweepPage } from '../../../activities/sweep/sweep';
import type { SweepKind, SweepPageResult } from '../../../activities/sweep/contract';
import { fileIndexKey, fileKey } from '../../../core/names/object-names';
import { MIN_INDEXED_BYTES } from '../../../core/plan/file-index';
import { createSweepRows } from '../../../storage/postgres/sweep';
import { createMemoryStore } from '../../support/memory-store';
import { useDatabase } from '../../support/postgres';
import { insertFile } from '../../support/rows';

const DAY_MS = 24 * 3_600_000;
const DELETED = { deleted_at: Math.floor(Date.now() / 1000) - 60 };

const database = useDatabase('batches', 'files');

/** A store with these objects, all of them two days old. */
async function storeOf(keys: readonly string[]) {
  const memory = createMemoryStore();
  const deleted: string[] = [];
  for (const key of keys) {
    await memory.putIfAbsent(key, Buffer.from('bytes'));
    memory.writtenAtMs.set(key, Date.now() - 2 * DAY_MS);
  }
  const remove = (key: string): Promise<void> => {
    deleted.push(key);
    return memory.delete(key);
  };
  return { ...memory, delete: remove, deleted };
}

/** Sweeps a page. Returns the number of removed items. */
async function sweep(kind: SweepKind, store: Awaited<ReturnType<typeof storeOf>>) {
  const run = createSweepPage({
    ...{ rows: createSweepRows(database.pool), store },
    retention: { scratch: DAY_MS, batches: 90 * DAY_MS },
    observer: { removed: () => undefined, rowsLost: () => undefined },
  });
  const page: SweepPageResult = await new MockActivityEnvironment({}).run(run, {
    kind,
    afterSeq: 0,
  });
  return page.removed;
}

describe('indexes of files', () => {
  it('go with the bytes of their files, and are looked for with large ones only', async () => {
    const small = await insertFile(database.pool, { ...DELETED, bytes: MIN_INDEXED_BYTES - 1 });
    const large = await insertFile(database.pool, { ...DELETED, bytes: MIN_INDEXED_BYTES });
    const kept = await insertFile(database.pool, { bytes: MIN_INDEXED_BYTES });
    const indexes = [large, kept].map(({ key }) => fileIndexKey(key));
    const store = await storeOf([small.key, large.key, kept.key, ...indexes]);
    expect(await sweep('files', store)).toBe(2);
    expect([...store.objects.keys()].sort()).toEqual([kept.key, fileIndexKey(kept.key)].sort());
    expect(store.deleted.sort()).toEqual([small.key, large.key, fileIndexKey(large.key)].sort());
  });

  it('go if their file never got a row', async () => {
    const { key } = await insertFile(database.pool, {});
    const owned = fileIndexKey(key);
    const orphan = fileIndexKey(fileKey('t', `file-${'0'.repeat(22)}`));
    const store = await storeOf([owned, orphan]);
    expect(await sweep('temporary', store)).toBe(1);
    expect([...store.objects.keys()]).toEqual([owned]);
  });
});
