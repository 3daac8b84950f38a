import type { ObjectBody, ObjectStore, PutResult } from '../../storage/object-store';
import { proveStore } from '../../storage/prove-store';
import { openS3Store } from '../../storage/objects/s3/s3-store';
import { describeWithGoTool } from '../support/go-tool';
import { createMemoryStore, type MemoryStore } from '../support/memory-store';
import { openTestBucket, S3_START_MS } from '../support/s3';

let store: MemoryStore;
beforeEach(() => (store = createMemoryStore()));

/** The store with one operation replaced. */
const changed = (over: Partial<ObjectStore>): ObjectStore => ({ ...store, ...over });

it('accepts a store that keeps its promises, and leaves nothing in it', async () => {
  await proveStore(store);
  expect([...store.objects.keys()]).toEqual([]);
});

it('removes what a run that was killed has left, and nothing of one that may still run', async () => {
  for (const name of ['killed', 'running']) {
    await store.putIfAbsent(`doctor/${name}/large`, Buffer.from('bytes'));
  }
  store.writtenAtMs.set('doctor/killed/large', Date.now() - 2 * 3_600_000);
  await proveStore(store);
  expect([...store.objects.keys()]).toEqual(['doctor/running/large']);
});

it('names a store that ignores If-None-Match', async () => {
  const overwrite = async (key: string, body: ObjectBody): Promise<PutResult> => {
    await store.delete(key);
    return store.putIfAbsent(key, body);
  };
  await expect(proveStore(changed({ putIfAbsent: overwrite }))).rejects.toMatchObject({
    code: 'object_store_failed',
    message: expect.stringMatching(/second write changed .*ignores If-None-Match.*conditional/),
  });
  expect([...store.objects.keys()]).toEqual([]);
});

it('names a store that checks the key before it writes, so that several writers at once win', async () => {
  const racy = async (key: string, body: ObjectBody): Promise<PutResult> => {
    const isThere = (await store.head(key)) !== null;
    await new Promise((resolve) => setImmediate(resolve));
    if (!isThere) await store.delete(key);
    return isThere ? 'exists' : store.putIfAbsent(key, body);
  };
  await expect(proveStore(changed({ putIfAbsent: racy }))).rejects.toThrow(
    '20 of 20 writers at once each changed an object that existed',
  );
});

it('names a store whose conditions hold for small objects only', async () => {
  const put = async (key: string, body: ObjectBody): Promise<PutResult> => {
    if (!(body instanceof Uint8Array)) await store.delete(key);
    return store.putIfAbsent(key, body);
  };
  await expect(proveStore(changed({ putIfAbsent: put }))).rejects.toThrow('second write in parts');
});

it.each<[string, (store: MemoryStore) => Partial<ObjectStore>, string]>([
  [
    'ranges',
    (plain) => ({ read: (key, range) => plain.read(key, range && { from: 0, to: range.to }) }),
    'a range of an object has other bytes',
  ],
  [
    'joining',
    (plain) => ({ concatenate: (key, parts) => plain.concatenate(key, [...parts].reverse()) }),
    'objects are not joined in their order',
  ],
  [
    'look-ups',
    () => ({ head: () => Promise.resolve({ size: 1 }) }),
    'a range of an object has other bytes',
  ],
  [
    'listing',
    () => ({
      async *list() {
        // Eventually consistent: it shows nothing yet.
      },
    }),
    'a listing right after a write is not complete',
  ],
  ['deleting', () => ({ delete: () => Promise.resolve() }), 'is still listed after it was deleted'],
])('names what does not work: %s', async (what, faultOf, expected) => {
  await expect(proveStore(changed(faultOf(store)))).rejects.toThrow(expected);
  if (what !== 'deleting') expect([...store.objects.keys()]).toEqual([]);
});

describeWithGoTool('versitygw', 'an S3 server', () => {
  it(
    'is accepted, and is as empty as before',
    async () => {
      const bucket = await openS3Store((await openTestBucket()).options);
      await proveStore(bucket);
      const keys = [];
      for await (const { key } of bucket.list('')) keys.push(key);
      expect(keys).toEqual([]);
      await bucket.close();
    },
    S3_START_MS,
  );
});
