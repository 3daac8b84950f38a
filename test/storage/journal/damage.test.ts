import { truncate } from 'node:fs/promises';
import { SEAL_TRAILER_BYTES } from '../../../core/journal/seal';
import { objectPath } from '../../../storage/objects/filesystem-layout';
import { append, collect, journalPlace, offsetsOf, SCOPE } from './fixtures';
import type { JournalPlace } from './fixtures';

let place: JournalPlace;

beforeEach(async () => {
  place = await journalPlace();
});
afterEach(() => place.remove());

it('reads the whole frames of a seal that has lost its end', async () => {
  const writer = place.journal.openWriter(SCOPE, { from: 0, to: 3 });
  for (const offset of [1, 2, 3]) append(writer, offset);
  await writer.flush();
  const [segment] = writer.frames;
  const seal = await place.journal.writeSeal(SCOPE, { from: 0, to: 3 }, writer.frames);
  await writer.close();
  await place.store.delete(segment?.objectKey ?? '');
  const scan = async () => offsetsOf(await collect(place.journal.scan(SCOPE, { from: 0, to: 3 })));
  const path = objectPath(place.path, seal.key);
  const frames = (seal.size - SEAL_TRAILER_BYTES - 16) / 3 - 16;
  for (const [size, expected] of [
    [seal.size, [1, 2, 3]],
    [seal.size - 1, [1, 2, 3]],
    [seal.size - SEAL_TRAILER_BYTES, [1, 2, 3]],
    [16 + 3 * frames, [1, 2, 3]],
    [16 + 3 * frames - 1, [1, 2]],
    [16 + frames, [1]],
    [16, []],
    [0, []],
  ] as const) {
    await truncate(path, size);
    expect([size, await scan()]).toEqual([size, expected]);
  }
});
