import { crc32 } from 'node:zlib';
import { encodeRetryFrame, FRAME_KIND, readFrame } from '../../../core/journal/frame';
import { parseSegmentKey } from '../../../core/names/object-names';
import { until } from '../../support/until';
import { answer, append, collect, offsetsOf } from './fixtures';
import { Area, type JournalUnderTest } from './journal-under-test';
import { describeScans, describeSeals } from './scan-conformance';

/**
 * The tests that every journal must pass. Call it inside a `describe`. `open` returns a journal that may
 * hold other batches, within `openMs`.
 */
export function describeJournal(open: () => Promise<JournalUnderTest>, openMs = 5_000): void {
  const at = new Area();
  beforeAll(async () => {
    at.place = await open();
  }, openMs);
  beforeEach(() => at.begin());
  afterEach(() => at.end());
  afterAll(() => at.place.remove());
  describeWriters(at);
  describeWritesInFlight(at);
  describeClosing(at);
  describeFailures(at);
  describeScans(at);
  describeSeals(at);
}

function describeWriters(at: Area): void {
  it('creates no object before its first write', async () => {
    const writer = at.writer();
    await writer.flush();
    await writer.close();
    await writer.close();
    expect(await collect(at.store.list(`batches/${at.scope.batchId}/`))).toEqual([]);
  });

  it('writes on its own timer and lists the frames it has written', async () => {
    const writer = at.writer();
    append(writer, 7);
    expect(writer.frames).toEqual([]);
    expect(writer.unwrittenBytes).toBe(answer(7, 'answer 7').bytes.length);
    await until(() => writer.frames.length === 1, 5_000, 'the frame to be written');
    expect(writer.unwrittenBytes).toBe(0);
    const [ref] = writer.frames;
    const bytes = await at.store.read(ref!.objectKey);
    expect(readFrame(bytes, ref!.position, crc32)?.end).toBe(ref!.position + ref!.byteLength);
  });

  it('names its segments after the positions of its range, both ends included', async () => {
    const [frame] = await at.written(20, 30, [1]);
    expect(frame!.objectKey).toContain('/0000000020-0000000029.');
    expect(parseSegmentKey(frame!.objectKey)).toMatchObject({ range: { from: 20, to: 30 } });
  });

  it('keeps all frames in order through many writes', async () => {
    const writer = at.writer(0, 10_000);
    const big = 'x'.repeat(20_000);
    for (let offset = 0; offset < 200; offset++) {
      append(writer, offset, big);
      if (offset % 37 === 0) await writer.flush();
    }
    await writer.close();
    const offsets = Array.from({ length: 200 }, (_, i) => i);
    expect(offsetsOf(writer.frames)).toEqual(offsets);
    expect(offsetsOf(await at.scan(0, 10_000))).toEqual(offsets);
    for (const ref of await at.scan(0, 10_000)) expect(writer.frames).toContainEqual(ref);
  });

  it('lists when a line in backoff may be sent again', async () => {
    const writer = at.writer();
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
    for (const [from, to] of [
      [0, 10_001],
      [5, 5],
      [-1, 2],
    ] as const) {
      expect(() => at.journal.openWriter(at.scope, { from, to })).toThrow('plan positions');
    }
  });
}

/** Waits for a held write, and returns what ends it. */
async function writeUnderWay(held: (() => void)[]): Promise<() => void> {
  await until(() => held.length > 0, 5_000, 'a write under way');
  return held.shift() ?? (() => undefined);
}

function describeWritesInFlight(at: Area): void {
  it('flushes what was appended while a write ran, and loses nothing', async () => {
    const held = at.hold();
    const writer = at.writer();
    const flushed: string[] = [];
    append(writer, 1);
    const first = writer.flush().then(() => flushed.push('first'));
    const endFirst = await writeUnderWay(held);
    append(writer, 2);
    append(writer, 3);
    const second = writer.flush().then(() => flushed.push('second'));
    endFirst();
    await first;
    const endSecond = await writeUnderWay(held);
    expect(flushed).toEqual(['first']);
    expect(offsetsOf(writer.frames)).toEqual([1]);
    expect(writer.unwrittenBytes).toBeGreaterThan(0);
    endSecond();
    await second;
    expect(offsetsOf(writer.frames)).toEqual([1, 2, 3]);
    expect(writer.unwrittenBytes).toBe(0);
  });

  it('never runs two writes of one writer at the same time', async () => {
    const held = at.hold();
    const writer = at.writer();
    const offsets = [1, 2, 3, 4, 5];
    let most = 0;
    for (const offset of offsets) {
      append(writer, offset, 'x'.repeat(300_000));
      void writer.flush();
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, held.length);
    }
    while (writer.frames.length < offsets.length) {
      most = Math.max(most, held.length);
      held.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(most).toBe(1);
    expect(offsetsOf(writer.frames)).toEqual(offsets);
  });
}

function describeClosing(at: Area): void {
  it('waits at close for the running write and writes what was appended since', async () => {
    const held = at.hold();
    const writer = at.writer();
    append(writer, 1);
    void writer.flush();
    const endFirst = await writeUnderWay(held);
    append(writer, 2);
    const closed = writer.close();
    endFirst();
    (await writeUnderWay(held))();
    await closed;
    expect(offsetsOf(writer.frames)).toEqual([1, 2]);
  });

  it('waits with a flush for a close that has begun, and writes no frame twice', async () => {
    const held = at.hold();
    const writer = at.writer();
    append(writer, 1);
    const closed = writer.close();
    const endWrite = await writeUnderWay(held);
    const flushed = writer.flush();
    await new Promise((resolve) => setImmediate(resolve));
    expect(held).toEqual([]);
    endWrite();
    await Promise.all([closed, flushed]);
    expect(offsetsOf(writer.frames)).toEqual([1]);
  });
}

function describeFailures(at: Area): void {
  it('keeps its frames while writes fail, and writes all of them in order', async () => {
    const writer = at.writer();
    append(writer, 1);
    await writer.flush();
    at.fail();
    append(writer, 2);
    append(writer, 3);
    await until(() => !writer.healthy, 5_000, 'a write that fails');
    expect(offsetsOf(writer.frames)).toEqual([1]);
    expect(writer.unwrittenBytes).toBeGreaterThan(0);
    append(writer, 4);
    at.recover();
    await writer.flush();
    expect(writer.healthy).toBe(true);
    expect(writer.unwrittenBytes).toBe(0);
    expect(offsetsOf(writer.frames)).toEqual([1, 2, 3, 4]);
    const found = await at.scan(20, 30);
    for (const ref of writer.frames) expect(found).toContainEqual(ref);
  });

  it('reports unwritten frames at close and leaves nothing running', async () => {
    at.fail();
    const writer = at.journal.openWriter(at.scope, { from: 20, to: 30 });
    append(writer, 1);
    const lost = { code: 'object_store_failed', retryable: true };
    const flushed = expect(writer.flush()).rejects.toMatchObject(lost);
    await expect(writer.close()).rejects.toMatchObject(lost);
    await flushed;
    await expect(writer.flush()).rejects.toMatchObject(lost);
  });
}
