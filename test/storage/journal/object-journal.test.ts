import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isOfBatch } from '../../../core/names/object-names';
import { createObjectJournal } from '../../../storage/journal/object-journal';
import type { ObjectStore } from '../../../storage/object-store';
import { openCachedStore } from '../../../storage/objects/cache/cached-store';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import { openS3Store } from '../../../storage/objects/s3/s3-store';
import { describeWithGoTool } from '../../support/go-tool';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';
import { openTestBucket, S3_START_MS } from '../../support/s3';
import { until } from '../../support/until';
import { answer, append, collect, offsetsOf, SCOPE } from './fixtures';
import { describeJournal } from './journal-conformance';
import type { JournalUnderTest } from './journal-under-test';

const range = { from: 0, to: 10 };

/** The store with a call of `beforeWrite` before each put of a segment. */
function underTest(store: ObjectStore, remove: () => Promise<void>): JournalUnderTest {
  const place: JournalUnderTest = {
    journal: createObjectJournal({
      store: {
        ...store,
        putIfAbsent: async (key, body) => {
          if (key.endsWith('.seg')) await place.beforeWrite();
          return store.putIfAbsent(key, body);
        },
      },
    }),
    store,
    beforeWrite: () => Promise.resolve(),
    remove,
  };
  return place;
}

describe('a journal on an object store in memory', () => {
  describeJournal(async () => underTest(createMemoryStore(), () => Promise.resolve()));
});

describe('a journal on an object store in a folder', () => {
  describeJournal(async () => {
    const path = await mkdtemp(join(tmpdir(), 'nightshift-journal-'));
    const store = await openFilesystemStore({ path });
    return underTest(store, () => rm(path, { recursive: true, force: true }));
  });
});

describeWithGoTool('versitygw', 'a journal on S3', () => {
  describe('read through a cache', () => {
    describeJournal(async () => {
      const { options } = await openTestBucket();
      const store = await openCachedStore(await openS3Store(options), {
        bytes: 64 * 1024 * 1024,
        isLasting: isOfBatch,
      });
      return underTest(store, () => store.close());
    }, S3_START_MS);
  });
});

describe('segments on an object store', () => {
  let store: MemoryStore;
  /** Outcomes of the next puts of segments; without one, a put succeeds. */
  let outcomes: ('fails' | 'succeeds without a reply')[];
  let puts: { key: string; bytes: Buffer }[];

  beforeEach(() => {
    store = createMemoryStore();
    outcomes = [];
    puts = [];
  });

  const openJournal = (options: { flushIntervalMs?: number; segmentBytes?: number } = {}) => {
    const putIfAbsent: ObjectStore['putIfAbsent'] = async (key, body) => {
      puts.push({ key, bytes: Buffer.from(body as Uint8Array) });
      const outcome = outcomes.shift();
      if (outcome === 'fails') throw new Error('no connection');
      const result = await store.putIfAbsent(key, body);
      if (outcome !== undefined) throw new Error('no reply');
      return result;
    };
    return createObjectJournal({ store: { ...store, putIfAbsent }, ...options });
  };
  const scanned = async () =>
    offsetsOf(await collect(createObjectJournal({ store }).scan(SCOPE, range)));
  const number = (key: string) => /\.(\d+)\.seg$/.exec(key)?.[1];

  it('are one object for each write, numbered in order, never written again', async () => {
    const writer = openJournal().openWriter(SCOPE, range);
    for (const offset of [1, 2, 3]) {
      append(writer, offset);
      await writer.flush();
    }
    await writer.close();
    expect(puts.map(({ key }) => number(key))).toEqual(['000001', '000002', '000003']);
    expect(new Set(puts.map(({ key }) => key.replace(/\.\d+\.seg$/, ''))).size).toBe(1);
    expect(await scanned()).toEqual([1, 2, 3]);
  });

  it('hold at most the configured bytes, except for one answer that is larger', async () => {
    const writer = openJournal({ segmentBytes: 1_000 }).openWriter(SCOPE, range);
    for (const offset of [1, 2, 3, 4]) append(writer, offset, 'x'.repeat(350));
    append(writer, 5, 'x'.repeat(5_000));
    append(writer, 6);
    await writer.close();
    expect(puts.map(({ bytes }) => bytes.length - 16)).toEqual([
      ...[2 * (350 + 44), 2 * (350 + 44)],
      ...[5_000 + 44, answer(6, 'answer 6').bytes.length],
    ]);
    expect(await scanned()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('are written at once when enough bytes wait, and after the interval otherwise', async () => {
    const journal = openJournal({ segmentBytes: 1_000, flushIntervalMs: 3_600_000 });
    const writer = journal.openWriter(SCOPE, range);
    append(writer, 1);
    append(writer, 2, 'x'.repeat(1_000));
    await until(() => writer.frames.length > 0, 5_000, 'a write by size');
    const hasty = openJournal({ flushIntervalMs: 1 }).openWriter(SCOPE, range);
    append(hasty, 3);
    await until(() => hasty.frames.length === 1, 5_000, 'a write by time');
    await Promise.all([writer.close(), hasty.close()]);
  });

  it('are put again under the same name with the same bytes until the put succeeds', async () => {
    outcomes = ['fails', 'fails'];
    const writer = openJournal().openWriter(SCOPE, range);
    append(writer, 1);
    const flushed = writer.flush();
    await until(() => !writer.healthy, 5_000, 'a put that fails');
    append(writer, 2);
    await flushed;
    await writer.close();
    const [first, second, third, fourth] = puts;
    expect(second).toEqual(first);
    expect(third).toEqual(first);
    expect(number(fourth!.key)).toBe('000002');
    expect(await scanned()).toEqual([1, 2]);
  });

  it('count as written if they are found with the same bytes after a reply was lost', async () => {
    outcomes = ['succeeds without a reply'];
    const writer = openJournal().openWriter(SCOPE, range);
    append(writer, 1);
    await writer.flush();
    append(writer, 2);
    await writer.close();
    expect(puts.map(({ key }) => number(key))).toEqual(['000001', '000001', '000002']);
    expect(store.objects.size).toBe(2);
    expect(await scanned()).toEqual([1, 2]);
  });

  it('get the next number if their name holds bytes of another writer', async () => {
    const writer = openJournal().openWriter(SCOPE, range);
    append(writer, 1);
    await writer.flush();
    const key = writer.frames[0]!.objectKey.replace('000001', '000002');
    store.objects.set(key, store.objects.get(writer.frames[0]!.objectKey)!);
    append(writer, 2);
    await writer.flush();
    expect(number(writer.frames[1]!.objectKey)).toBe('000003');
    expect(await scanned()).toEqual([1, 1, 2]);
    await writer.close();
  });

  it('are read again if the read that compares them fails', async () => {
    outcomes = ['succeeds without a reply'];
    const { read } = store;
    let reads = 0;
    store.read = (...args) => (reads++ === 0 ? Promise.reject(new Error('away')) : read(...args));
    const writer = openJournal().openWriter(SCOPE, range);
    append(writer, 1);
    await writer.flush();
    expect(reads).toBe(2);
    expect(puts.map(({ key }) => number(key))).toEqual(['000001', '000001', '000001']);
    await writer.close();
  });
});
