import type { ObjectStore } from '../../../../storage/object-store';
import { openCachedStore } from '../../../../storage/objects/cache/cached-store';
import { PAGE_BYTES } from '../../../../storage/objects/cache/pages';
import { countedStore, FakeDisk, patternBytes, type CountedStore } from './fixtures';

/** An object of which sooner or later every byte is read, in an order that jumps. */

const MIB = 1024 * 1024;
const KEY = 'files/input';
const BYTES = patternBytes(48 * MIB + 12_345, 21);

/** Takes much longer for a write than the store needs for 1 MiB. */
class SlowDisk extends FakeDisk {
  readonly #turns: number;
  waiting = 0;
  mostWaiting = 0;

  constructor(slots: number, turns: number) {
    super(slots);
    this.#turns = turns;
  }

  override async write(slot: number, bytes: Buffer): Promise<void> {
    this.mostWaiting = Math.max(this.mostWaiting, ++this.waiting);
    for (let i = 0; i < this.#turns; i++) await new Promise((resolve) => setImmediate(resolve));
    this.waiting--;
    await super.write(slot, bytes);
  }
}

let plain: CountedStore;
let disk: SlowDisk;
let store: ObjectStore;

async function open(turns: number): Promise<void> {
  plain = countedStore();
  plain.objects.set(KEY, BYTES);
  disk = new SlowDisk((256 * MIB) / PAGE_BYTES, turns);
  const options = { bytes: 256 * MIB, isLasting: () => false, openDisk: async () => disk };
  store = await openCachedStore(plain, options);
}

afterEach(() => store.close());

/** Reads 1,000 bytes in each page, as jumps: 7 is prime to the number of pages. */
async function readEverywhere(atOnce: number): Promise<void> {
  const reader = await store.open(KEY);
  const pages = Math.ceil(BYTES.length / PAGE_BYTES);
  for (let n = 0; n < pages; n += atOnce) {
    const batch = Array.from({ length: Math.min(atOnce, pages - n) }, async (_, i) => {
      const from = (((n + i) * 7) % pages) * PAGE_BYTES + 500;
      const bytes = await reader.read(from, 1_000);
      expect(bytes.equals(BYTES.subarray(from, from + 1_000))).toBe(true);
    });
    await Promise.all(batch);
  }
  await reader.close();
}

it('is fetched in blocks that grow from 1 to 8 MiB, and in few requests', async () => {
  await open(1);
  await readEverywhere(1);
  const lengths = plain.reads.map(({ range }) => (range?.to ?? 0) - (range?.from ?? 0));
  // Three reads do not show yet that the object is read in many places.
  expect(lengths.slice(0, 3)).toEqual([PAGE_BYTES, PAGE_BYTES, PAGE_BYTES]);
  const blocks = lengths.slice(3);
  expect(blocks[0]).toBeLessThanOrEqual(MIB);
  expect(Math.max(...blocks)).toBeGreaterThan(6 * MIB);
  expect(plain.reads.length).toBeLessThan(20);
});

it('is fetched once, if the disk is slower than the store', async () => {
  await open(50);
  await readEverywhere(100);
  const fetched = plain.reads.reduce(
    (sum, { range }) => sum + (range?.to ?? 0) - (range?.from ?? 0),
    0,
  );
  expect(fetched).toBe(BYTES.length);
  expect(disk.mostWaiting).toBeLessThanOrEqual(16 * 3);
});

it('is kept as a whole by a scan, if the disk is slower than the store', async () => {
  await open(50);
  let scanned = 0;
  for await (const chunk of store.scan(KEY)) {
    expect(chunk.equals(BYTES.subarray(scanned, scanned + chunk.length))).toBe(true);
    scanned += chunk.length;
  }
  expect(scanned).toBe(BYTES.length);
  expect(disk.mostWaiting).toBeLessThanOrEqual(3);
  await readEverywhere(100);
  expect(plain.reads).toHaveLength(1);
});

it('is served although the disk hangs', async () => {
  await open(1);
  disk.write = () => new Promise(() => undefined);
  const reader = await store.open(KEY);
  const found: Buffer[] = [];
  for (let at = 0; at < 12 * MIB; at += MIB) found.push(await reader.read(at, MIB));
  expect(Buffer.concat(found).equals(BYTES.subarray(0, 12 * MIB))).toBe(true);
});
