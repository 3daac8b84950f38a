import { crc32 } from 'node:zlib';
import { mkdir, readdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeRetryFrame, FRAME_KIND, readFrame } from '../../../core/journal/frame';
import { framesOfSegment } from '../../support/segment-frames';
import { journalPrefix, parseSegmentKey } from '../../../core/names/object-names';
import { until } from '../../support/until';
import {
  answer,
  append,
  FakeDisk,
  journalPlace,
  offsetsOf,
  SCOPE,
  type JournalPlace,
} from './fixtures';

let place: JournalPlace;
const range = { from: 20, to: 30 };

afterEach(() => place.remove());

describe('a writer on a filesystem', () => {
  beforeEach(async () => {
    place = await journalPlace();
  });

  it('creates nothing before its first write', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    await writer.flush();
    await writer.close();
    await writer.close();
    expect(await readdir(join(place.path, 'objects'))).toEqual([]);
  });

  it('writes on its own timer and lists the frames it has written', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 7);
    expect(writer.frames).toEqual([]);
    expect(writer.unwrittenBytes).toBe(answer(7, 'answer 7').bytes.length);
    await until(() => writer.frames.length === 1, 5_000, 'the frame to be written');
    expect(writer.unwrittenBytes).toBe(0);
    const [ref] = writer.frames;
    const bytes = await place.store.read(ref!.objectKey);
    expect(readFrame(bytes, ref!.position, crc32)?.end).toBe(ref!.position + ref!.byteLength);
    await writer.close();
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

  it('names its segment after the positions of its range, both ends included', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    await writer.flush();
    expect(parseSegmentKey(writer.frames[0]!.objectKey)).toMatchObject({
      range: { from: 20, to: 30 },
    });
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

  it('lists when a line in backoff may be sent again', async () => {
    const writer = place.journal.openWriter(SCOPE, range);
    const bytes = encodeRetryFrame({ offset: 5, tries: 2, notBeforeMs: 1_700_000_000_123 }, crc32);
    writer.append(readFrame(bytes, 0, crc32)!.header, bytes);
    await writer.flush();
    expect(writer.frames[0]).toMatchObject({
      header: { kind: FRAME_KIND.retry, tries: 2 },
      notBeforeMs: 1_700_000_000_123,
    });
    await writer.close();
    expect(() => append(writer, 1)).toThrow(expect.objectContaining({ code: 'internal' }));
  });

  it('refuses ranges that the format does not allow', () => {
    for (const bad of [
      { from: 0, to: 10_001 },
      { from: 5, to: 5 },
      { from: -1, to: 2 },
    ]) {
      expect(() => place.journal.openWriter(SCOPE, bad)).toThrow('plan positions');
    }
  });
});

describe('a writer on a disk that fails', () => {
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

  it('can abort a flush without losing the frames it waited for', async () => {
    disk.failOpens = 1_000;
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    const controller = new AbortController();
    const flushed = writer.flush(controller.signal);
    await until(() => !writer.healthy, 5_000, 'a write that fails');
    controller.abort(new Error('box over'));
    await expect(flushed).rejects.toThrow('box over');
    disk.failOpens = 0;
    await writer.flush();
    expect(offsetsOf(writer.frames)).toEqual([1]);
    await writer.close();
  });

  it('reports unwritten frames at close and leaves nothing running', async () => {
    disk.failOpens = 1_000;
    const writer = place.journal.openWriter(SCOPE, range);
    append(writer, 1);
    const lost = { code: 'object_store_failed', retryable: true };
    const flushed = expect(writer.flush()).rejects.toMatchObject(lost);
    await expect(writer.close()).rejects.toMatchObject(lost);
    await flushed;
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
