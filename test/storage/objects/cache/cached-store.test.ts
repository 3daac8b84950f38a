import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import fc from 'fast-check';
import type { ObjectReader, ObjectStore } from '../../../../storage/object-store';
import { openCachedStore, type CacheOptions } from '../../../../storage/objects/cache/cached-store';
import { PAGE_BYTES } from '../../../../storage/objects/cache/pages';
import { createMemoryStore } from '../../../support/memory-store';
import { readLater } from '../../../support/read-later';
import { until } from '../../../support/until';
import { describeObjectStore } from '../object-store-conformance';
import { countedStore, FakeDisk, patternBytes, type CountedStore } from './fixtures';

const MIB = 1024 * 1024;
const LASTING: Pick<CacheOptions, 'isLasting'> = { isLasting: (key) => key.startsWith('batches/') };

describe('a store behind a cache', () => {
  describe('of objects that last', () => {
    const options = { bytes: 8 * MIB, isLasting: () => true };
    describeObjectStore(() => openCachedStore(createMemoryStore(), options));
  });

  describe('of objects that may be deleted at any time', () => {
    const options = { bytes: 8 * MIB, isLasting: () => false };
    describeObjectStore(() => openCachedStore(createMemoryStore(), options));
  });
});

async function gather(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const chunk of chunks) copies.push(Buffer.from(chunk));
  return Buffer.concat(copies);
}

async function listAll(store: ObjectStore): Promise<void> {
  const keys: string[] = [];
  for await (const { key } of store.list('batches/b/')) keys.push(key);
  expect(keys).not.toEqual([]);
}

describe('requests to the store', () => {
  it('are one for each read of an open object if the cache is off', async () => {
    const memory = countedStore();
    memory.objects.set('files/input', patternBytes(MIB, 1));
    const off = await openCachedStore(memory, { ...LASTING, bytes: 0 });
    const reader = await off.open('files/input');
    for (const at of [0, 500_000, 500_000]) await reader.read(at, 1_000);
    const lengths = memory.reads.map(({ range }) => (range?.to ?? 0) - (range?.from ?? 0));
    expect(lengths).toEqual([1_000, 1_000, 1_000]);
  });

  let plain: CountedStore;
  let store: ObjectStore;
  beforeEach(async () => {
    plain = countedStore();
    store = await openCachedStore(plain, { ...LASTING, bytes: 64 * MIB });
  });
  afterEach(() => store.close());

  async function readForward(reader: ObjectReader, step: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let at = 0; at < reader.size; at += step) pieces.push(await reader.read(at, step));
    return Buffer.concat(pieces);
  }

  it.each([1_000, 100_000, 300_000])(
    'are few for an object that is read forward, %i bytes at a time',
    async (step) => {
      const bytes = patternBytes(30 * MIB + 12_345, 1);
      plain.objects.set('files/input', bytes);
      const reader = await store.open('files/input');
      expect((await readForward(reader, step)).equals(bytes)).toBe(true);
      // Of 64 KiB, then 1 MiB, doubling to 8 MiB.
      expect(plain.reads.length).toBeLessThanOrEqual(9);
      expect(plain.heads).toBe(1);
      const again = await store.open('files/input');
      expect((await readForward(again, step)).equals(bytes)).toBe(true);
      expect(plain.reads.length).toBeLessThanOrEqual(9);
      expect(plain.heads).toBe(1);
    },
  );

  it('are one for each page while many readers want it at the same time', async () => {
    const bytes = patternBytes(MIB, 2);
    plain.objects.set('files/input', bytes);
    const readers = await Promise.all(Array.from({ length: 20 }, () => store.open('files/input')));
    const reads = readers.map((reader, i) => reader.read(i * 40_000, 30_000));
    const found = await Promise.all(reads);
    found.forEach((piece, i) =>
      expect(piece.equals(bytes.subarray(i * 40_000, i * 40_000 + 30_000))).toBe(true),
    );
    expect(plain.reads).toHaveLength(1);
  });

  it('are none for a segment that this process wrote, and one for one that it listed', async () => {
    const bytes = patternBytes(300_000, 3);
    await store.putIfAbsent('batches/b/own.seg', bytes);
    plain.objects.set('batches/b/other.seg', bytes);
    await listAll(store);
    for (const name of ['own', 'other']) {
      const reader = await store.open(`batches/b/${name}.seg`);
      expect((await reader.read(0, 300_000)).equals(bytes)).toBe(true);
      expect((await reader.read(1_000, 70_000)).equals(bytes.subarray(1_000, 71_000))).toBe(true);
    }
    expect(plain.reads.map(({ key }) => key)).toEqual(['batches/b/other.seg']);
    expect(plain.heads).toBe(0);
  });

  it('are one for each range of a plan, and none for one that was read', async () => {
    const bytes = patternBytes(800_000, 4);
    plain.objects.set('batches/b/plan', bytes);
    for (const from of [0, 160_000, 640_000, 160_000]) {
      const range = { from, to: from + 160_000 };
      const piece = await store.read('batches/b/plan', range);
      expect(piece.equals(bytes.subarray(range.from, range.to))).toBe(true);
    }
    expect(plain.reads).toHaveLength(3);
    expect(plain.heads).toBe(0);
  });

  it('are none for a plan or a seal that this process wrote in pieces', async () => {
    const bytes = patternBytes(2 * MIB + 99_999, 11);
    async function* pieces() {
      const piece = Buffer.alloc(70_000);
      // Every piece is the same buffer, as the store allows.
      for (let at = 0; at < bytes.length; at += piece.length) {
        yield piece.subarray(0, bytes.copy(piece, 0, at, at + piece.length));
      }
    }
    await store.putIfAbsent('batches/b/seal', pieces());
    expect(plain.objects.get('batches/b/seal')!.equals(bytes)).toBe(true);
    expect((await readForward(await store.open('batches/b/seal'), 200_000)).equals(bytes)).toBe(
      true,
    );
    expect(plain.reads).toEqual([]);
    expect(plain.heads).toBe(0);
  });

  it('read the object of another writer that was first', async () => {
    const theirs = patternBytes(300_000, 12);
    plain.objects.set('batches/b/seal', theirs);
    async function* ours() {
      yield patternBytes(300_000, 13);
    }
    expect(await store.putIfAbsent('batches/b/seal', ours())).toBe('exists');
    const reader = await store.open('batches/b/seal');
    expect((await reader.read(0, 300_000)).equals(theirs)).toBe(true);
  });

  it('show that an object is shorter than a range of it, again and again', async () => {
    plain.objects.set('batches/b/plan', patternBytes(1_000, 14));
    for (let round = 0; round < 3; round++) {
      expect(await store.read('batches/b/plan', { from: 500, to: 2_000 })).toHaveLength(500);
    }
  });

  it('are one for an input that is scanned and then read in many places', async () => {
    const bytes = patternBytes(5 * MIB + 4_321, 15);
    plain.objects.set('files/input', bytes);
    expect((await gather(store.scan('files/input'))).equals(bytes)).toBe(true);
    expect(plain.reads).toHaveLength(1);
    const reader = await store.open('files/input');
    const at = [5 * MIB, 0, 3_000_000, 65_000, MIB - 1_000, 5 * MIB + 2_000];
    for (const from of at) {
      const piece = await reader.read(from, 2_000);
      expect(piece.equals(bytes.subarray(from, from + 2_000))).toBe(true);
    }
    expect(plain.reads).toHaveLength(1);
  });

  it('keep a fourth of the cache of an input that is scanned', async () => {
    plain.objects.set('files/input', patternBytes(20 * MIB, 16));
    await gather(store.scan('files/input'));
    const reader = await store.open('files/input');
    await reader.read(16 * MIB - 1_000, 1_000);
    expect(plain.reads).toHaveLength(1);
    await reader.read(18 * MIB, 1_000);
    expect(plain.reads).toHaveLength(2);
  });

  it('end with the scan of an input whose reader stops', async () => {
    const source = new Readable({ read: () => undefined });
    source.push(patternBytes(1_000, 18));
    plain.scan = () => source;
    for await (const chunk of store.scan('files/input')) {
      expect(chunk).toHaveLength(1_000);
      break;
    }
    expect(source.destroyed).toBe(true);
  });

  it('end with a scan that is aborted while no byte comes', async () => {
    const aborter = new AbortController();
    const { signal } = aborter;
    const source = new Readable({ read: () => aborter.abort() });
    plain.scan = (_key, options) => addAbortSignal(options?.signal ?? signal, source);
    const ended = gather(store.scan('files/input', { signal }));
    await expect(ended).rejects.toMatchObject({ code: 'ABORT_ERR' });
  });

  it('that fail in the middle of a scan are its error', async () => {
    const failure = new Error('away');
    async function* broken() {
      yield patternBytes(100_000, 17);
      throw failure;
    }
    plain.scan = () => Readable.from(broken());
    await expect(gather(store.scan('files/input'))).rejects.toBe(failure);
  });

  it('fetch only the pages of two reads at the ends of a large object', async () => {
    plain.objects.set('batches/b/seal', patternBytes(20 * MIB, 5));
    const reader = await store.open('batches/b/seal');
    await reader.read(0, 60);
    await reader.read(reader.size - 36, 36);
    const lengths = plain.reads.map(({ range }) => (range?.to ?? 0) - (range?.from ?? 0));
    expect(lengths).toEqual([PAGE_BYTES, PAGE_BYTES]);
  });

  it('are at most 16 at the same time', async () => {
    plain.objects.set('files/input', patternBytes(40 * MIB, 6));
    let running = 0;
    let most = 0;
    plain.beforeRead = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 2));
      running--;
    };
    const reader = await store.open('files/input');
    await Promise.all(Array.from({ length: 40 }, (_, i) => reader.read(i * MIB, 100)));
    expect(most).toBe(16);
  });

  it('are made again after one has failed', async () => {
    plain.objects.set('files/input', patternBytes(MIB, 7));
    const reader = await store.open('files/input');
    plain.beforeRead = () => Promise.reject(new Error('away'));
    await expect(Promise.all([reader.read(0, 10), reader.read(5, 10)])).rejects.toThrow('away');
    plain.beforeRead = () => Promise.resolve();
    expect(await reader.read(0, 10)).toEqual(plain.objects.get('files/input')!.subarray(0, 10));
  });

  it('show that a lasting object is gone when it is read', async () => {
    await store.putIfAbsent('batches/b/own', patternBytes(9 * MIB, 8));
    await listAll(store);
    plain.objects.clear();
    const reader = await store.open('batches/b/own');
    await expect(reader.read(0, 10)).rejects.toMatchObject({ code: 'object_missing' });
  });
});

describe('the disk of a cache', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nightshift-cache-test-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function readTwice(options: Partial<CacheOptions>): Promise<CountedStore> {
    const plain = countedStore();
    const bytes = patternBytes(4 * MIB, 9);
    plain.objects.set('files/input', bytes);
    const store = await openCachedStore(plain, { ...LASTING, bytes: 64 * MIB, ...options });
    for (let round = 0; round < 2; round++) {
      const reader = await store.open('files/input');
      for (let at = 0; at < bytes.length; at += 100_000) {
        const piece = await reader.read(at, 100_000);
        // Lets the disk work between the reads.
        for (let turns = 0; turns < 3; turns++)
          await new Promise((resolve) => setImmediate(resolve));
        expect(piece.equals(bytes.subarray(at, at + 100_000))).toBe(true);
      }
    }
    await store.close();
    return plain;
  }

  it('holds a file without a name', async () => {
    const plain = countedStore();
    const cacheFolder = join(folder, 'made', 'by', 'the', 'cache');
    const store = await openCachedStore(plain, { ...LASTING, bytes: MIB, folder: cacheFolder });
    plain.objects.set('files/input', patternBytes(MIB, 1));
    await (await store.open('files/input')).read(0, 10);
    expect(await readdir(cacheFolder)).toEqual([]);
    await store.close();
  });

  it('is not needed: without a folder every read is a request', async () => {
    await writeFile(join(folder, 'file'), '');
    const warn = jest.fn();
    const plain = await readTwice({ folder: join(folder, 'file', 'x'), logger: { warn } });
    expect(plain.reads).toHaveLength(2 * 42);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('keeps what fits when it becomes full, and serves the rest from the store', async () => {
    const disk = new FakeDisk(1_024);
    disk.fullFrom = 20;
    const warn = jest.fn();
    const plain = await readTwice({ openDisk: () => Promise.resolve(disk), logger: { warn } });
    expect(disk.pages.size).toBe(20);
    expect(plain.reads.length).toBeGreaterThan(5);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('loses pages that cannot be read, and no read', async () => {
    const disk = new FakeDisk(1_024);
    let calls = 0;
    disk.fails = () => calls++ % 3 === 0;
    await readTwice({ openDisk: () => Promise.resolve(disk) });
    expect(calls).toBeGreaterThan(0);
  });

  it('gives no bytes behind the end of an object, which an older page left in its slot', async () => {
    const disk = new FakeDisk(1);
    const plain = countedStore();
    const options = { ...LASTING, bytes: PAGE_BYTES, openDisk: () => Promise.resolve(disk) };
    const store = await openCachedStore(plain, options);
    await store.putIfAbsent('batches/a/segment', patternBytes(PAGE_BYTES, 1));
    await until(() => disk.pages.size === 1, 5_000, 'the page of the first object');
    const plan = patternBytes(1_000, 2);
    plain.objects.set('batches/b/plan', plan);
    const readPast = () => store.read('batches/b/plan', { from: 500, to: 2_000 });
    expect((await readPast()).equals(plan.subarray(500))).toBe(true);
    const isReplaced = () => disk.pages.get(0)?.subarray(0, 1_000).equals(plan) === true;
    await until(isReplaced, 5_000, 'the page of the second object');
    expect((await readPast()).equals(plan.subarray(500))).toBe(true);
  });

  it('holds no more pages than it has slots, the least recently read ones first to go', async () => {
    const disk = new FakeDisk(32);
    const plain = countedStore();
    const store = await openCachedStore(plain, {
      ...{ ...LASTING, bytes: 2 * MIB },
      openDisk: () => Promise.resolve(disk),
    });
    for (const name of ['a', 'b', 'c']) plain.objects.set(`files/${name}`, patternBytes(MIB, 1));
    const read = async (name: string) => {
      await (await store.open(`files/${name}`)).read(0, MIB);
      await until(() => disk.pages.size >= Math.min(32, 16 * plain.reads.length), 5_000, 'pages');
    };
    await read('a');
    await read('b');
    await read('a');
    await read('c');
    await read('a');
    expect(plain.reads.map(({ key }) => key)).toEqual(['files/a', 'files/b', 'files/c']);
    await read('b');
    expect(plain.reads).toHaveLength(4);
    expect(disk.pages.size).toBe(32);
  });
});

it('gives the bytes of the store, whatever is read at once and however the disk fails', async () => {
  const sizes = [0, 1, 65_536, 65_537, 700_000, 3 * MIB + 17];
  const objects = sizes.map((size, i) => patternBytes(size, i + 1));
  const read = fc.record({
    object: fc.nat(sizes.length - 1),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 400_000 })),
    isForward: fc.boolean(),
    isLater: fc.boolean(),
  });
  const rounds = fc.array(fc.array(read, { maxLength: 8 }), { maxLength: 12 });
  const disks = fc.record({ slots: fc.integer({ min: 0, max: 40 }), failing: fc.nat(4) });
  await fc.assert(
    fc.asyncProperty(rounds, disks, async (all, { slots, failing }) => {
      const plain = createMemoryStore();
      objects.forEach((bytes, i) =>
        plain.objects.set(`${i % 2 ? 'batches' : 'files'}/${i}`, bytes),
      );
      const disk = new FakeDisk(slots);
      let calls = 0;
      disk.fails = () => failing > 0 && calls++ % 5 < failing - 1;
      const openDisk = () => Promise.resolve(disk);
      const store = await openCachedStore(plain, { ...LASTING, bytes: 4 * MIB, openDisk });
      const open = () =>
        Promise.all(objects.map((_, i) => store.open(`${i % 2 ? 'batches' : 'files'}/${i}`)));
      const readers = await open();
      const ends = objects.map(() => 0);
      for (const reads of all) {
        const results = reads.map(async ({ object, at, length, isForward, isLater }) => {
          const bytes = objects[object]!;
          const position = isForward ? ends[object]! : Math.floor(at * bytes.length);
          ends[object] = position + length;
          const reader = readers[object]!;
          const found = await (isLater
            ? readLater(reader, position, length)
            : reader.read(position, length));
          expect(found.equals(bytes.subarray(position, position + length))).toBe(true);
        });
        await Promise.all(results);
      }
      await store.close();
    }),
    { numRuns: 60 },
  );
});
