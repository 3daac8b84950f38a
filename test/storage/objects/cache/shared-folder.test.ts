import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCachedStore } from '../../../../storage/objects/cache/cached-store';
import { countedStore, patternBytes } from './fixtures';

const MIB = 1024 ** 2;

it('serves each process its own bytes if several share the folder of the cache', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'nightshift-cache-shared-'));
  const open = async (seed: number) => {
    const plain = countedStore();
    plain.objects.set('files/input', patternBytes(MIB, seed));
    const store = await openCachedStore(plain, { bytes: MIB, folder, isLasting: () => true });
    return { plain, store, bytes: patternBytes(MIB, seed) };
  };
  const processes = [await open(1), await open(2)];
  for (const at of [0, 1_000]) {
    for (const { store, bytes } of processes) {
      const reader = await store.open('files/input');
      const piece = await reader.read(at, 100_000);
      expect(piece.equals(bytes.subarray(at, at + 100_000))).toBe(true);
    }
  }
  for (const { plain, store } of processes) {
    expect(plain.reads).toHaveLength(1);
    await store.close();
  }
  await rm(folder, { recursive: true });
});
