import type { ObjectStore } from '../../../../storage/object-store';
import { openCachedStore } from '../../../../storage/objects/cache/cached-store';
import { PAGE_BYTES } from '../../../../storage/objects/cache/pages';
import { countedStore, FakeDisk, patternBytes, type CountedStore } from './fixtures';

/** An object that several readers of a process have open. */

const MIB = 1024 * 1024;
const KEY = 'files/input';
const BYTES = patternBytes(40 * MIB, 22);

let plain: CountedStore;
let store: ObjectStore;
beforeEach(async () => {
  plain = countedStore();
  plain.objects.set(KEY, BYTES);
  store = await openCachedStore(plain, {
    ...{ bytes: 256 * MIB, isLasting: () => false },
    openDisk: async () => new FakeDisk((256 * MIB) / PAGE_BYTES),
  });
});
afterEach(() => store.close());

it('is looked up once, until the last of them closes it', async () => {
  const readers = await Promise.all([store.open(KEY), store.open(KEY)]);
  expect(plain.heads).toBe(1);
  await readers[0].close();
  await readers[0].close();
  readers.push(await store.open(KEY));
  expect(plain.heads).toBe(1);
  for (const reader of readers) await reader.close();
  await (await store.open(KEY)).close();
  expect(plain.heads).toBe(2);
});

it('is looked up again after it was deleted here, also while it is open', async () => {
  const reader = await store.open(KEY);
  await store.delete(KEY);
  await expect(store.open(KEY)).rejects.toMatchObject({ code: 'object_missing' });
  plain.objects.set(KEY, BYTES);
  const again = await store.open(KEY);
  // Closing the reader of the deleted one leaves the new one open.
  await reader.close();
  await (await store.open(KEY)).close();
  expect(plain.heads).toBe(3);
  await again.close();
});

it('is looked up again after that failed, by each who opens it then', async () => {
  const { head } = plain;
  plain.head = () => Promise.reject(new Error('the store is away'));
  const failed = await Promise.allSettled([store.open(KEY), store.open(KEY)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  plain.head = head;
  await (await store.open(KEY)).close();
  expect(plain.heads).toBe(1);
});

it('fails the reads of all of them if it is gone', async () => {
  const readers = [await store.open(KEY), await store.open(KEY)];
  plain.objects.delete(KEY);
  for (const reader of readers) {
    await expect(reader.read(5 * MIB, 10)).rejects.toMatchObject({ code: 'object_missing' });
  }
  // And is no longer there for others, although it is still open.
  await expect(store.open(KEY)).rejects.toMatchObject({ code: 'object_missing' });
  for (const reader of readers) await reader.close();
});

it('is fetched in blocks that go on growing from reader to reader', async () => {
  const first = await store.open(KEY);
  for (let at = 0; at < BYTES.length; at += 4 * MIB) {
    const reader = await store.open(KEY);
    const bytes = await reader.read(at + 1_000, 10);
    expect(bytes.equals(BYTES.subarray(at + 1_000, at + 1_010))).toBe(true);
    await reader.close();
  }
  await first.close();
  const lengths = plain.reads.map(({ range }) => (range?.to ?? 0) - (range?.from ?? 0));
  expect(lengths.slice(0, 3)).toEqual([PAGE_BYTES, PAGE_BYTES, PAGE_BYTES]);
  expect(lengths.slice(3, 6)).toEqual([MIB, 2 * MIB, 4 * MIB]);
});
