import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { FRAME_KIND, readFrame } from '../../../core/journal/frame';
import { decodeSealTrailer, SEAL_TRAILER_BYTES } from '../../../core/journal/seal';
import type { FrameRef } from '../../../storage/journal/journal-store';
import { decodeSealIndex } from '../../support/seal-index';
import { append, collect, offsetsOf } from './fixtures';
import type { Area } from './journal-under-test';

/** The tests of scans that every journal must pass. */
export function describeScans(at: Area): void {
  it('finds the frames of all writers in objects that overlap the range', async () => {
    await at.written(0, 10, [1, 2]);
    await at.written(0, 5, [2]);
    await at.written(10, 20, [11]);
    await at.written(30, 40, [31]);
    expect(offsetsOf(await at.scan(0, 10)).sort()).toEqual([1, 2, 2]);
    expect(offsetsOf(await at.scan(9, 11)).sort((a, b) => a - b)).toEqual([1, 2, 11]);
    expect(offsetsOf(await at.scan(20, 30))).toEqual([]);
    expect(offsetsOf(await at.scan(39, 40))).toEqual([31]);
  });

  it('reads seals that overlap the range, and every rest object', async () => {
    const frames = await at.written(0, 3, [1, 2, 3]);
    await at.journal.writeSeal(at.scope, { from: 0, to: 3 }, frames);
    await at.journal.writeSeal(at.scope, 'rest', frames.slice(1, 2));
    const far = await at.scan(500, 501);
    expect(far.map((ref) => [ref.header.offset, ref.objectKey.includes('/rest.')])).toEqual([
      [2, true],
    ]);
    expect(offsetsOf(await at.scan(0, 1))).toEqual([1, 2, 3, 1, 2, 3, 2]);
  });

  it('finds rest objects behind many seals of later ranges', async () => {
    const positions = Array.from({ length: 62 }, (_, i) => i);
    const frames = await at.written(0, 62, positions);
    for (const from of positions.slice(2)) {
      await at.journal.writeSeal(at.scope, { from, to: from + 1 }, [frames[from]!]);
    }
    await at.journal.writeSeal(at.scope, 'rest', frames.slice(1, 2));
    await at.journal.writeSeal(at.scope, 'rest', frames.slice(0, 1));
    const inSeals = await collect(
      at.journal.scan(at.scope, { from: 0, to: 2 }, ({ key }) => key.endsWith('.seal')),
    );
    expect(offsetsOf(inSeals).sort()).toEqual([0, 1]);
  });

  it('skips objects that the caller refuses by name and range', async () => {
    const frames = await at.written(0, 3, [1, 2, 3]);
    await at.written(3, 6, [4]);
    const seal = await at.journal.writeSeal(at.scope, { from: 0, to: 3 }, frames);
    const rest = await at.journal.writeSeal(at.scope, 'rest', frames.slice(0, 1));
    const seen = new Map<string, unknown>();
    const found = at.journal.scan(at.scope, { from: 0, to: 4 }, ({ key, range }) => {
      seen.set(key, range);
      return range?.from === 3 || key === rest.key;
    });
    expect(offsetsOf(await collect(found))).toEqual([4, 1]);
    expect(seen.size).toBe(4);
    expect(seen.get(seal.key)).toEqual({ from: 0, to: 3 });
    expect(seen.get(rest.key)).toBeNull();
    expect(seen.get(frames[0]!.objectKey)).toEqual({ from: 0, to: 3 });
  });

  describeLargeScans(at);
}

function describeLargeScans(at: Area): void {
  it('finds nothing for a model without a journal', async () => {
    expect(await at.scan(0, 100)).toEqual([]);
  });

  it('reads frames larger than its window, and those behind them', async () => {
    const writer = at.journal.openWriter(at.scope, { from: 0, to: 9 });
    append(writer, 1, 'a'.repeat(3_000_000));
    append(writer, 2);
    append(writer, 3, 'b'.repeat(1_048_576 - 44));
    append(writer, 4);
    await writer.close();
    expect((await at.scan(0, 9)).map((ref) => [ref.header.offset, ref.byteLength - 44])).toEqual([
      [1, 3_000_000],
      [2, 8],
      [3, 1_048_532],
      [4, 8],
    ]);
  });

  it('finds what other chunks wrote around a range in the middle of a long plan', async () => {
    await at.written(15_000, 25_000, [1]);
    await at.written(29_000, 31_000, [2]);
    await at.written(39_999, 40_001, [3]);
    await at.written(40_001, 40_002, [4]);
    await at.written(9_999, 10_000, [5]);
    const found = await at.scan(20_000, 40_000);
    expect(offsetsOf(found).sort()).toEqual([1, 2, 3]);
    expect(offsetsOf(await at.scan(0, 200_000)).sort()).toEqual([1, 2, 3, 4, 5]);
  });

  it('finds the frames of one writer in the order of writing', async () => {
    const writer = at.writer(0, 10);
    for (const offset of [5, 3, 9, 1]) {
      append(writer, offset);
      await writer.flush();
    }
    expect(offsetsOf(await at.scan(0, 10))).toEqual([5, 3, 9, 1]);
  });
}

/** The tests of seals that every journal must pass. */
export function describeSeals(at: Area): void {
  it('writes a seal with its frames in order of offset and an index that finds each', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(1_000_000), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 4 }),
        async (offsets, writers) => {
          const size = offsets.length;
          const parts = Array.from({ length: writers }, (_, w) =>
            offsets.filter((_o, i) => i % writers === w),
          );
          const frames: FrameRef[] = [];
          for (const part of parts) frames.push(...(await at.written(0, size, part)));
          frames.sort((a, b) => a.header.offset - b.header.offset);
          const seal = await at.journal.writeSeal(at.scope, { from: 0, to: size }, frames);
          const bytes = await at.store.read(seal.key);
          expect(bytes.length).toBe(seal.size);
          const trailer = decodeSealTrailer(bytes, bytes.length);
          const index = decodeSealIndex(
            bytes.subarray(trailer.indexPosition, -SEAL_TRAILER_BYTES),
            trailer,
          );
          expect(index.map((entry) => entry.offset)).toEqual([...offsets].sort((a, b) => a - b));
          for (const { offset, position } of index) {
            const frame = readFrame(bytes, position, crc32)!;
            expect(bytes.toString('utf8', frame.payloadStart, frame.end)).toBe(`answer ${offset}`);
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  describeListedSeals(at);
}

function describeListedSeals(at: Area): void {
  it('lists seals in key order, with range and size', async () => {
    const frames = await at.written(0, 4, [1, 2, 3, 4]);
    const late = await at.journal.writeSeal(at.scope, { from: 2, to: 4 }, frames.slice(2));
    const early = await at.journal.writeSeal(at.scope, { from: 0, to: 2 }, frames.slice(0, 2));
    const rest = await at.journal.writeSeal(at.scope, 'rest', frames.slice(3));
    const other = { ...at.scope, safeModel: 'another' };
    const seal = await at.journal.writeSeal(other, { from: 0, to: 1 }, frames.slice(0, 1));
    expect(await at.journal.listSeals(at.scope.batchId)).toEqual([seal, early, late, rest]);
    expect(await at.journal.listSeals(`batch_${'0'.repeat(32)}`)).toEqual([]);
  });

  it('refuses to seal frames that are not one answer for each position, in order', async () => {
    const [a, b] = await at.written(0, 4, [1, 2]);
    const refused = { code: 'internal' };
    const seal = (frames: FrameRef[], to = frames.length) =>
      at.journal.writeSeal(at.scope, { from: 0, to }, frames);
    await expect(seal([b!, a!])).rejects.toMatchObject(refused);
    await expect(seal([a!, a!])).rejects.toMatchObject(refused);
    await expect(seal([a!, b!], 3)).rejects.toMatchObject(refused);
    const retry = { ...a!, header: { ...a!.header, kind: FRAME_KIND.retry } };
    await expect(seal([retry])).rejects.toMatchObject(refused);
    expect(await at.journal.listSeals(at.scope.batchId)).toEqual([]);
  });

  it('refuses to seal frames that were changed or deleted since they were scanned', async () => {
    const frames = await at.written(0, 2, [1, 2]);
    const failed = { code: 'object_store_failed', retryable: true };
    const moved = frames.map((ref) => ({ ...ref, position: ref.position + 1 }));
    const range = { from: 0, to: 2 };
    await expect(at.journal.writeSeal(at.scope, range, moved)).rejects.toMatchObject(failed);
    await at.store.delete(frames[0]!.objectKey);
    await expect(at.journal.writeSeal(at.scope, range, frames)).rejects.toMatchObject(failed);
    expect(await at.journal.listSeals(at.scope.batchId)).toEqual([]);
  });
}
