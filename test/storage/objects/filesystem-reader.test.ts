import fs, { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { createFileReader } from '../../../storage/objects/filesystem-reader';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-reader-'))));
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const BYTES = randomBytes(300_000);

async function openFile(): Promise<FileHandle> {
  const path = join(folder, 'input');
  writeFileSync(path, BYTES);
  return open(path, 'r');
}

it('returns exactly the requested bytes, in any order and concurrently', async () => {
  const reader = createFileReader(await openFile(), BYTES.length);
  const at = fc.record({
    position: fc.integer({ min: 0, max: BYTES.length + 10 }),
    length: fc.oneof(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 0, max: 100_000 })),
    forward: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(at, { maxLength: 30 }), async (reads) => {
      let next = 0;
      const all = reads.map(async ({ position, length, forward }) => {
        const from = forward ? next : position;
        next = Math.min(from + length + 1, BYTES.length);
        const into = Buffer.alloc(length);
        const got = reader.readNow?.(from, length, into) ?? (await reader.read(from, length, into));
        expect(got.equals(BYTES.subarray(from, from + length))).toBe(true);
      });
      await Promise.all(all);
    }),
    { numRuns: 100 },
  );
  await reader.close();
});

it('reads consecutive lines with few asynchronous calls', async () => {
  const sync = jest.spyOn(fs, 'readSync');
  const file = await openFile();
  const read = jest.spyOn(file, 'read');
  const reader = createFileReader(file, BYTES.length);
  for (let position = 0; position < BYTES.length; position += 1_000) {
    const line = reader.readNow?.(position, 999) ?? (await reader.read(position, 999));
    expect(line.equals(BYTES.subarray(position, position + 999))).toBe(true);
  }
  expect(sync.mock.calls.filter(([fd]) => fd === file.fd)).toEqual([]);
  // 300 KB in windows of 64 KiB, and the first line alone, because it may be the only one.
  expect(read.mock.calls.length).toBeLessThan(8);
  await reader.close();
});

it('blocks only the reader of a file that hangs, and completes its reads when the file is back', async () => {
  const file = await openFile();
  let letGo = (): void => undefined;
  const hang = new Promise<void>((resolve) => (letGo = resolve));
  const hanging = {
    // A synchronous read of this descriptor would fail.
    fd: -1,
    read: async (...args: Parameters<FileHandle['read']>) => {
      await hang;
      return file.read(...args);
    },
    close: () => file.close(),
  } as unknown as FileHandle;
  const reader = createFileReader(hanging, BYTES.length);
  const settled: string[] = [];
  const reads = [0, 1_000, 2_000, 200_000].map((position) =>
    reader.read(position, 999).then((bytes) => {
      settled.push('read');
      expect(bytes.equals(BYTES.subarray(position, position + 999))).toBe(true);
    }),
  );
  for (let turns = 0; turns < 100; turns++) await turn();
  expect(settled).toEqual([]);
  expect(reader.readNow?.(0, 999)).toBeNull();
  letGo();
  await Promise.all(reads);
  await reader.close();
});

it('rejects the reads that wait for a failed read-ahead, and reads again for the next one', async () => {
  const file = await openFile();
  const reader = createFileReader(file, BYTES.length);
  await reader.read(0, 999);
  jest.spyOn(file, 'read').mockRejectedValueOnce(Object.assign(new Error('gone'), { code: 'EIO' }));
  const both = await Promise.allSettled([reader.read(1_000, 999), reader.read(2_000, 999)]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect((await reader.read(3_000, 999)).equals(BYTES.subarray(3_000, 3_999))).toBe(true);
  await reader.close();
});

it('has what was read ahead in memory, and reads it once', async () => {
  const file = await openFile();
  const reader = createFileReader(file, BYTES.length);
  const read = jest.spyOn(file, 'read');
  const ahead = reader.readAhead?.(70_000);
  expect(reader.readNow?.(70_000, 999)).toBeNull();
  const early = reader.read(71_000, 999);
  await ahead;
  expect(reader.readNow?.(70_000, 999)).toEqual(BYTES.subarray(70_000, 70_999));
  expect(reader.readNow?.(135_000, 536)).toEqual(BYTES.subarray(135_000, 135_536));
  expect(await early).toEqual(BYTES.subarray(71_000, 71_999));
  expect(reader.readNow?.(135_000, 537)).toBeNull();
  expect(read).toHaveBeenCalledTimes(1);
  await reader.close();
});
