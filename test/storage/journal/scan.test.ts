import { crc32 } from 'node:zlib';
import { truncate, writeFile } from 'node:fs/promises';
import fc from 'fast-check';
import { FRAME_KIND, readFrame } from '../../../core/journal/frame';
import { encodeObjectHeader, MAGIC } from '../../../core/journal/magic';
import { decodeSealTrailer, SEAL_TRAILER_BYTES } from '../../../core/journal/seal';
import { decodeSealIndex } from '../../support/seal-index';
import { segmentKey } from '../../../core/names/object-names';
import type { FrameRef } from '../../../storage/journal/journal-store';
import { objectPath } from '../../../storage/objects/filesystem-layout';
import {
  answer,
  append,
  collect,
  journalPlace,
  offsetsOf,
  SCOPE,
  type JournalPlace,
} from './fixtures';

let place: JournalPlace;

beforeEach(async () => {
  place = await journalPlace();
});
afterEach(() => place.remove());

const scan = (from: number, to: number) => collect(place.journal.scan(SCOPE, { from, to }));

async function written(from: number, to: number, offsets: readonly number[]): Promise<FrameRef[]> {
  const writer = place.journal.openWriter(SCOPE, { from, to });
  for (const offset of offsets) append(writer, offset);
  await writer.close();
  return [...writer.frames];
}

it('finds the frames of all writers in objects that overlap the range', async () => {
  await written(0, 10, [1, 2]);
  await written(0, 5, [2]);
  await written(10, 20, [11]);
  await written(30, 40, [31]);
  expect(offsetsOf(await scan(0, 10)).sort()).toEqual([1, 2, 2]);
  expect(offsetsOf(await scan(9, 11)).sort((a, b) => a - b)).toEqual([1, 2, 11]);
  expect(offsetsOf(await scan(20, 30))).toEqual([]);
  expect(offsetsOf(await scan(39, 40))).toEqual([31]);
});

it('reads seals that overlap the range, and every rest object', async () => {
  const frames = await written(0, 3, [1, 2, 3]);
  await place.journal.writeSeal(SCOPE, { from: 0, to: 3 }, frames);
  await place.journal.writeSeal(SCOPE, 'rest', frames.slice(1, 2));
  const far = await scan(500, 501);
  expect(far.map((ref) => [ref.header.offset, ref.objectKey.includes('/rest.')])).toEqual([
    [2, true],
  ]);
  expect(offsetsOf(await scan(0, 1))).toEqual([1, 2, 3, 1, 2, 3, 2]);
});

it('skips objects that the caller refuses by name and range', async () => {
  const frames = await written(0, 3, [1, 2, 3]);
  await written(3, 6, [4]);
  const seal = await place.journal.writeSeal(SCOPE, { from: 0, to: 3 }, frames);
  const rest = await place.journal.writeSeal(SCOPE, 'rest', frames.slice(0, 1));
  const seen = new Map<string, unknown>();
  const found = place.journal.scan(SCOPE, { from: 0, to: 4 }, ({ key, range }) => {
    seen.set(key, range);
    return range?.from === 3 || key === rest.key;
  });
  expect(offsetsOf(await collect(found))).toEqual([4, 1]);
  expect(seen.size).toBe(4);
  expect(seen.get(seal.key)).toEqual({ from: 0, to: 3 });
  expect(seen.get(rest.key)).toBeNull();
  expect(seen.get(frames[0]!.objectKey)).toEqual({ from: 0, to: 3 });
});

it('finds nothing for a model without a journal', async () => {
  expect(await scan(0, 100)).toEqual([]);
});

it('reads frames larger than its window, and those behind them', async () => {
  const writer = place.journal.openWriter(SCOPE, { from: 0, to: 9 });
  append(writer, 1, 'a'.repeat(3_000_000));
  append(writer, 2);
  append(writer, 3, 'b'.repeat(1_048_576 - 44));
  append(writer, 4);
  await writer.close();
  expect((await scan(0, 9)).map((ref) => [ref.header.offset, ref.byteLength - 44])).toEqual([
    [1, 3_000_000],
    [2, 8],
    [3, 1_048_532],
    [4, 8],
  ]);
});

it('loses exactly the frames that a torn tail touches, at any byte', async () => {
  const frames = [1, 2, 3].map((offset) => answer(offset, 'x'.repeat(offset * 5)).bytes);
  const whole = Buffer.concat([encodeObjectHeader(MAGIC.segment), ...frames]);
  const ends = frames.map((_, i) => 16 + Buffer.concat(frames.slice(0, i + 1)).length);
  await written(0, 1, [0]);
  const key = segmentKey(SCOPE.batchId, SCOPE.safeModel, { from: 5, to: 10 }, 'f'.repeat(16));
  const path = objectPath(place.path, key);
  await writeFile(path, whole);
  for (let size = whole.length; size >= 0; size--) {
    await truncate(path, size);
    const expected = ends.filter((end) => end <= size).length;
    expect(offsetsOf(await scan(5, 10))).toEqual([1, 2, 3].slice(0, expected));
  }
});

it('hides the frame of a damaged byte and those behind it, and no other', async () => {
  const frames = [1, 2, 3].map((offset) => answer(offset, 'answer').bytes);
  const whole = Buffer.concat([encodeObjectHeader(MAGIC.segment), ...frames]);
  const length = frames[0]!.length;
  await written(0, 1, [0]);
  const path = objectPath(
    place.path,
    segmentKey(SCOPE.batchId, SCOPE.safeModel, { from: 5, to: 10 }, 'e'.repeat(16)),
  );
  for (let at = 0; at < whole.length; at++) {
    const damaged = Buffer.from(whole);
    damaged.writeUInt8(damaged.readUInt8(at) ^ 0x10, at);
    await writeFile(path, damaged);
    const expected = at < 16 ? 0 : Math.floor((at - 16) / length);
    expect(offsetsOf(await scan(5, 10))).toEqual([1, 2, 3].slice(0, expected));
  }
});

it('stops at once at a frame length of gigabytes', async () => {
  const bytes = Buffer.concat([
    encodeObjectHeader(MAGIC.segment),
    answer(1, 'whole').bytes,
    Buffer.alloc(2_000_000, 0xff),
  ]);
  await written(0, 1, [0]);
  const key = segmentKey(SCOPE.batchId, SCOPE.safeModel, { from: 5, to: 10 }, 'd'.repeat(16));
  await writeFile(objectPath(place.path, key), bytes);
  expect(offsetsOf(await scan(5, 10))).toEqual([1]);
});

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
        for (const part of parts) frames.push(...(await written(0, size, part)));
        frames.sort((a, b) => a.header.offset - b.header.offset);
        const seal = await place.journal.writeSeal(SCOPE, { from: 0, to: size }, frames);
        const bytes = await place.store.read(seal.key);
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

it('lists seals in key order, with range and size', async () => {
  const frames = await written(0, 4, [1, 2, 3, 4]);
  const late = await place.journal.writeSeal(SCOPE, { from: 2, to: 4 }, frames.slice(2));
  const early = await place.journal.writeSeal(SCOPE, { from: 0, to: 2 }, frames.slice(0, 2));
  const rest = await place.journal.writeSeal(SCOPE, 'rest', frames.slice(3));
  const other = { ...SCOPE, safeModel: 'another' };
  const seal = await place.journal.writeSeal(other, { from: 0, to: 1 }, frames.slice(0, 1));
  expect(await place.journal.listSeals(SCOPE.batchId)).toEqual([seal, early, late, rest]);
  expect(await place.journal.listSeals(`batch_${'0'.repeat(32)}`)).toEqual([]);
});

it('refuses to seal frames that are not one answer for each position, in order', async () => {
  const [a, b] = await written(0, 4, [1, 2]);
  const refused = { code: 'internal' };
  const seal = (frames: FrameRef[], to = frames.length) =>
    place.journal.writeSeal(SCOPE, { from: 0, to }, frames);
  await expect(seal([b!, a!])).rejects.toMatchObject(refused);
  await expect(seal([a!, a!])).rejects.toMatchObject(refused);
  await expect(seal([a!, b!], 3)).rejects.toMatchObject(refused);
  const retry = { ...a!, header: { ...a!.header, kind: FRAME_KIND.retry } };
  await expect(seal([retry])).rejects.toMatchObject(refused);
  expect(await place.journal.listSeals(SCOPE.batchId)).toEqual([]);
});

it('refuses to seal frames that were changed or deleted since they were scanned', async () => {
  const frames = await written(0, 2, [1, 2]);
  const failed = { code: 'object_store_failed', retryable: true };
  const moved = frames.map((ref) => ({ ...ref, position: ref.position + 1 }));
  const range = { from: 0, to: 2 };
  await expect(place.journal.writeSeal(SCOPE, range, moved)).rejects.toMatchObject(failed);
  await place.store.delete(frames[0]!.objectKey);
  await expect(place.journal.writeSeal(SCOPE, range, frames)).rejects.toMatchObject(failed);
  expect(await place.journal.listSeals(SCOPE.batchId)).toEqual([]);
});
