import type { OpenAppendFile } from '../../../storage/journal/append-file';
import { until } from '../../support/until';
import { append, FakeDisk, journalPlace, offsetsOf, SCOPE } from './fixtures';
import type { JournalPlace } from './fixtures';

const range = { from: 0, to: 10 };

let place: JournalPlace;
/** Functions that complete the writes in flight. */
let held: (() => void)[];
let disk: FakeDisk;

/** A disk whose writes complete when the test calls a function in `held`. */
const slowDisk: OpenAppendFile = async (path) => {
  const file = await disk.open(path);
  return {
    ...file,
    append: async (bytes) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return file.append(bytes);
    },
  };
};

beforeEach(async () => {
  held = [];
  disk = new FakeDisk();
  place = await journalPlace(slowDisk);
});
afterEach(async () => {
  const release = setInterval(() => held.splice(0).forEach((end) => end()), 5);
  await place.remove();
  clearInterval(release);
});

async function writeUnderWay(): Promise<() => void> {
  await until(() => held.length > 0, 5_000, 'a write under way');
  return held.shift() ?? (() => undefined);
}

it('flushes what was appended while a write ran, and loses nothing', async () => {
  const writer = place.journal.openWriter(SCOPE, range);
  const flushed: string[] = [];
  append(writer, 1);
  const first = writer.flush().then(() => flushed.push('first'));
  const endFirst = await writeUnderWay();
  append(writer, 2);
  append(writer, 3);
  const second = writer.flush().then(() => flushed.push('second'));
  endFirst();
  await first;
  const endSecond = await writeUnderWay();
  expect(flushed).toEqual(['first']);
  expect(offsetsOf(writer.frames)).toEqual([1]);
  expect(writer.unwrittenBytes).toBeGreaterThan(0);
  endSecond();
  await second;
  expect(offsetsOf(writer.frames)).toEqual([1, 2, 3]);
  expect(writer.unwrittenBytes).toBe(0);
});

it('waits at close for the running write and writes what was appended since', async () => {
  const writer = place.journal.openWriter(SCOPE, range);
  append(writer, 1);
  void writer.flush();
  const endFirst = await writeUnderWay();
  append(writer, 2);
  const closed = writer.close();
  endFirst();
  (await writeUnderWay())();
  await closed;
  expect(offsetsOf(writer.frames)).toEqual([1, 2]);
});

it('never runs two writes of one writer at the same time', async () => {
  const writer = place.journal.openWriter(SCOPE, range);
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
    (await writeUnderWay())();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(most).toBe(1);
  expect(offsetsOf(writer.frames)).toEqual(offsets);
});
