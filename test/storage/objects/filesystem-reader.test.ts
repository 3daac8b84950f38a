import fs, { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { createFileReader } from '../../../storage/objects/filesystem-reader';
import { readLater } from '../../support/read-later';

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

interface FileRead {
  readonly fd: number;
  readonly into: Buffer;
  readonly offset: number;
  readonly length: number;
  readonly position: number;
  done(error: Error | null, bytesRead: number): void;
}

/** Has the next reads with a callback done by `replacement`. */
function replaceReads(times: number, replacement: (read: FileRead) => void): void {
  const spy = jest.spyOn(fs, 'read');
  for (let i = 0; i < times; i++) {
    spy.mockImplementationOnce(((fd, into, offset, length, position, done) =>
      replacement({ fd, into, offset, length, position, done })) as FsRead as typeof fs.read);
  }
}

type FsRead = (...args: [number, Buffer, number, number, number, FileRead['done']]) => void;

function failNextRead(): void {
  replaceReads(1, ({ done }) => done(Object.assign(new Error('EIO: gone'), { code: 'EIO' }), 0));
}

/** Asynchronous reads of a file so far. */
function readsOf({ fd }: FileHandle): number {
  return jest.mocked(fs.read).mock.calls.filter(([of]) => of === fd).length;
}

it('returns exactly the requested bytes, in any order and concurrently', async () => {
  const reader = createFileReader(await openFile(), BYTES.length);
  const at = fc.record({
    position: fc.integer({ min: 0, max: BYTES.length + 10 }),
    length: fc.oneof(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 0, max: 100_000 })),
    forward: fc.boolean(),
    later: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(at, { maxLength: 30 }), async (reads) => {
      let next = 0;
      const all = reads.map(async ({ position, length, forward, later }) => {
        const from = forward ? next : position;
        next = Math.min(from + length + 1, BYTES.length);
        const into = Buffer.alloc(length);
        const read = () =>
          later ? readLater(reader, from, length, into) : reader.read(from, length, into);
        const got = reader.readNow?.(from, length, into) ?? (await read());
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
  jest.spyOn(fs, 'read');
  const reader = createFileReader(file, BYTES.length);
  for (let position = 0; position < BYTES.length; position += 1_000) {
    const line = reader.readNow?.(position, 999) ?? (await reader.read(position, 999));
    expect(line.equals(BYTES.subarray(position, position + 999))).toBe(true);
  }
  expect(sync.mock.calls.filter(([fd]) => fd === file.fd)).toEqual([]);
  // 300 KB in windows of 64 KiB, and the first line alone, because it may be the only one.
  expect(readsOf(file)).toBeGreaterThan(0);
  expect(readsOf(file)).toBeLessThan(8);
  await reader.close();
});

it('blocks only the reader of a file that hangs, and completes its reads when the file is back', async () => {
  const file = await openFile();
  let letGo = (): void => undefined;
  const hang = new Promise<void>((resolve) => (letGo = resolve));
  const readFile = fs.read;
  replaceReads(4, ({ fd, into, offset, length, position, done }) => {
    void hang.then(() => readFile(fd, into, offset, length, position, done));
  });
  // A synchronous read of the file would hang the process.
  jest.spyOn(fs, 'readSync').mockImplementation(() => {
    throw new Error('hangs');
  });
  const reader = createFileReader(file, BYTES.length);
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
  failNextRead();
  const both = await Promise.allSettled([reader.read(1_000, 999), reader.read(2_000, 999)]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect((await reader.read(3_000, 999)).equals(BYTES.subarray(3_000, 3_999))).toBe(true);
  await reader.close();
});

it('has what was read ahead in memory, and reads it once', async () => {
  const file = await openFile();
  const reader = createFileReader(file, BYTES.length);
  jest.spyOn(fs, 'read');
  const ahead = reader.readAhead?.(70_000);
  expect(reader.readNow?.(70_000, 999)).toBeNull();
  const early = reader.read(71_000, 999);
  await ahead;
  expect(reader.readNow?.(70_000, 999)).toEqual(BYTES.subarray(70_000, 70_999));
  expect(reader.readNow?.(135_000, 536)).toEqual(BYTES.subarray(135_000, 135_536));
  expect(await early).toEqual(BYTES.subarray(71_000, 71_999));
  expect(reader.readNow?.(135_000, 537)).toBeNull();
  expect(readsOf(file)).toBe(1);
  await reader.close();
});

it('tells a callback of a read that fails, with the error of the store', async () => {
  const reader = createFileReader(await openFile(), BYTES.length);
  failNextRead();
  await expect(readLater(reader, 0, 999)).rejects.toMatchObject({
    code: 'object_store_failed',
    message: 'read: Error: EIO: gone',
  });
  expect((await readLater(reader, 200_000, 999)).equals(BYTES.subarray(200_000, 200_999))).toBe(
    true,
  );
  await reader.close();
});

it('goes on where a read ended too soon, and ends where the file does', async () => {
  const reader = createFileReader(await openFile(), BYTES.length + 500);
  const readFile = fs.read;
  replaceReads(3, ({ fd, into, offset, position, done }) =>
    readFile(fd, into, offset, 100, position, done),
  );
  expect((await readLater(reader, 1_000, 999)).equals(BYTES.subarray(1_000, 1_999))).toBe(true);
  expect(await readLater(reader, 299_900, 600)).toEqual(BYTES.subarray(299_900));
  await reader.close();
});

it('closes its file only when no read uses it, and refuses reads from then on', async () => {
  const file = await openFile();
  const close = jest.spyOn(file, 'close');
  const reader = createFileReader(file, BYTES.length);
  const reads = [0, 200_000].map((position) => readLater(reader, position, 999));
  const closing = reader.close();
  await expect(readLater(reader, 100_000, 999)).rejects.toMatchObject({
    code: 'object_store_failed',
  });
  expect(close).not.toHaveBeenCalled();
  expect(await Promise.all(reads)).toEqual([
    BYTES.subarray(0, 999),
    BYTES.subarray(200_000, 200_999),
  ]);
  await closing;
  await reader.close();
  expect(close).toHaveBeenCalledTimes(1);
});
