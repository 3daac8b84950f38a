import { crc32 } from 'node:zlib';
import { mkdir, readdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readFrame } from '../../../core/journal/frame';
import { journalPrefix } from '../../../core/names/object-names';
import { openAppendFile, type OpenAppendFile } from '../../../storage/journal/append-file';
import { framesOfSegment } from '../../support/segment-frames';
import { until } from '../../support/until';
import { append, FakeDisk, journalPlace, offsetsOf, SCOPE, type JournalPlace } from './fixtures';
import { describeJournal } from './journal-conformance';
import type { JournalUnderTest } from './journal-under-test';

const range = { from: 20, to: 30 };

describe('a journal on a filesystem', () => {
  describeJournal(async () => {
    const openFile: OpenAppendFile = async (path) => {
      const file = await openAppendFile(path);
      return {
        ...file,
        append: async (bytes) => {
          await underTest.beforeWrite();
          return file.append(bytes);
        },
      };
    };
    const { journal, store, remove } = await journalPlace(openFile);
    const underTest: JournalUnderTest = {
      ...{ journal, store, remove },
      beforeWrite: () => Promise.resolve(),
    };
    return underTest;
  });
});

let place: JournalPlace;

describe('a writer on a filesystem', () => {
  afterEach(() => place.remove());
  beforeEach(async () => {
    place = await journalPlace();
  });

  it('creates nothing while the store is unmounted, keeps its frames, and recovers by itself', async () => {
    const away = `${place.path}-away`;
    const writer = place.journal.openWriter(SCOPE, range);
    await rename(place.path, away);
    await mkdir(place.path);
    append(writer, 7);
    await until(() => !writer.healthy, 5_000, 'a write that fails');
    expect(await readdir(place.path)).toEqual([]);
    await rmdir(place.path);
    await rename(away, place.path);
    await writer.flush();
    expect(writer.healthy).toBe(true);
    expect(offsetsOf(writer.frames)).toEqual([7]);
    await writer.close();
  });

  it('keeps all frames in order through many writes, in one segment', async () => {
    const writer = place.journal.openWriter(SCOPE, { from: 0, to: 10_000 });
    const big = 'x'.repeat(20_000);
    for (let offset = 0; offset < 200; offset++) {
      append(writer, offset, big);
      if (offset % 37 === 0) await writer.flush();
    }
    await writer.close();
    const [key, ...others] = await readdir(
      join(place.path, 'objects', journalPrefix(SCOPE.batchId, SCOPE.safeModel)),
    );
    expect(others).toEqual([]);
    const bytes = await place.store.read(journalPrefix(SCOPE.batchId, SCOPE.safeModel) + key);
    const found = [...framesOfSegment(bytes)].map((frame) => frame.header.offset);
    expect(found).toEqual(Array.from({ length: 200 }, (_, i) => i));
    expect(offsetsOf(writer.frames)).toEqual(found);
  });
});

describe('a writer on a disk that fails', () => {
  afterEach(() => place.remove());
  let disk: FakeDisk;
  beforeEach(async () => {
    disk = new FakeDisk();
    place = await journalPlace(disk.open);
  });

  it('keeps frames while the disk is full and writes all of them to a new segment', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    await writer.flush();
    disk.freeBytes = 70;
    append(writer, 2);
    append(writer, 3);
    await until(() => !writer.healthy, 5_000, 'a write that fails');
    expect(offsetsOf(writer.frames)).toEqual([1]);
    expect(writer.unwrittenBytes).toBeGreaterThan(0);
    append(writer, 4);
    disk.freeBytes = Number.POSITIVE_INFINITY;
    await writer.flush();
    expect(writer.healthy).toBe(true);
    expect(writer.unwrittenBytes).toBe(0);
    expect(offsetsOf(writer.frames)).toEqual([1, 2, 3, 4]);
    const written = disk.files.map((file) =>
      [...framesOfSegment(file.bytes)].map((frame) => frame.header.offset),
    );
    expect(written[0]).toEqual([1, 2]);
    expect(written.at(-1)).toEqual([2, 3, 4]);
    for (const ref of writer.frames) {
      const file = disk.files.find(({ path }) => path.endsWith(ref.objectKey));
      expect(readFrame(file!.bytes, ref.position, crc32)?.header.offset).toBe(ref.header.offset);
    }
    await writer.close();
  });

  it('removes segments that never took a frame', async () => {
    disk.freeBytes = 30;
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    const isTidy = (): boolean => !writer.healthy && disk.files.length === 0;
    await until(isTidy, 5_000, 'a write that fails and leaves no file');
    expect(writer.frames).toEqual([]);
    disk.freeBytes = 70;
    await writer.flush();
    expect(offsetsOf(writer.frames)).toEqual([1]);
    expect(disk.files).toHaveLength(1);
    await writer.close();
  });

  it('is unhealthy while no segment can be created', async () => {
    disk.failOpens = 2;
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    await until(() => !writer.healthy, 5_000, 'a write that fails');
    await writer.flush();
    expect(writer.healthy).toBe(true);
    expect(disk.files).toHaveLength(1);
    await writer.close();
  });

  it('abandons a segment whose sync failed and continues in a new one', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    await writer.flush();
    disk.failSyncs = 1;
    await place.journal.close();
    append(writer, 2);
    await writer.flush();
    await writer.close();
    await place.journal.close();
    expect(disk.files).toHaveLength(2);
    expect(disk.files.map((file) => file.closed)).toEqual([true, true]);
  });

  it('syncs what was written and closes its files', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    await writer.close();
    expect(disk.files[0]).toMatchObject({ synced: 0, closed: false });
    await place.journal.close();
    expect(disk.files[0]).toMatchObject({ synced: disk.files[0]!.bytes.length, closed: true });
  });
});
