import type { ObjectStore } from '../../../../storage/object-store';
import { openCachedStore } from '../../../../storage/objects/cache/cached-store';
import { until } from '../../../support/until';
import { countedStore, FakeDisk, patternBytes, type CountedStore } from './fixtures';

const KEY = 'batches/b/model_map.json';
const BYTES = patternBytes(100_000, 5);
let disk: FakeDisk;
let plain: CountedStore;
let store: ObjectStore;

beforeEach(async () => {
  disk = new FakeDisk(64);
  plain = countedStore();
  store = await openCachedStore(plain, {
    bytes: 4_194_304,
    isLasting: (key) => key.startsWith('batches/'),
    openDisk: () => Promise.resolve(disk),
  });
});
afterEach(() => store.close());

async function expectRead(key: string, requests: number): Promise<void> {
  plain.reads.length = 0;
  expect((await store.read(key)).equals(BYTES)).toBe(true);
  expect(plain.reads).toHaveLength(requests);
}

const written = (): Promise<true> => until(() => disk.writes > 0, 5_000, 'the disk');

describe('a whole read', () => {
  it('is no request for an object of a batch that this process has put', async () => {
    await store.putIfAbsent(KEY, BYTES);
    // First from memory, then from the disk.
    await expectRead(KEY, 0);
    await written();
    await expectRead(KEY, 0);
    expect(plain.heads).toBe(0);
  });

  it('is a request each time for an object of another process, also if its size is known', async () => {
    await plain.putIfAbsent(KEY, BYTES);
    await expectRead(KEY, 1);
    await (await store.open(KEY)).close();
    await expectRead(KEY, 1);
    expect(disk.writes).toBe(0);
  });

  it('is a request for what another process put first', async () => {
    await plain.putIfAbsent(KEY, BYTES);
    expect(await store.putIfAbsent(KEY, patternBytes(50_000, 6))).toBe('exists');
    await expectRead(KEY, 1);
  });

  it('is a request for an object that may be deleted at any time', async () => {
    await store.putIfAbsent('files/a', BYTES);
    await expectRead('files/a', 1);
  });

  it('is a request if the disk lost the pages', async () => {
    await store.putIfAbsent(KEY, BYTES);
    await written();
    disk.fails = () => true;
    await expectRead(KEY, 1);
  });

  it('finds no object that this process has deleted', async () => {
    await store.putIfAbsent(KEY, BYTES);
    await store.delete(KEY);
    await expect(store.read(KEY)).rejects.toMatchObject({ code: 'object_missing' });
  });
});
