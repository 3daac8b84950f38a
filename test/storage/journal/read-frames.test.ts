import { truncate, writeFile } from 'node:fs/promises';
import { encodeObjectHeader, MAGIC } from '../../../core/journal/magic';
import { segmentKey } from '../../../core/names/object-names';
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

/** Makes the folder of the segments. */
async function written(from: number, to: number, offsets: readonly number[]): Promise<void> {
  const writer = place.journal.openWriter(SCOPE, { from, to });
  for (const offset of offsets) append(writer, offset);
  await writer.close();
}

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
