import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { NightshiftError } from '../../../../core/errors';
import type { ObjectStore } from '../../../../storage/object-store';
import { FrameMerge } from '../../../../storage/journal/merge/frame-merge';
import type { FrameSource } from '../../../../storage/journal/merge/frame-source';
import { WindowPool } from '../../../../storage/journal/merge/window-pool';
import { NO_USAGE } from '../../../../core/batch/counts';
import { encodeFrame, FRAME_HEADER_BYTES, FRAME_KIND } from '../../../../core/journal/frame';
import { createMemoryStore } from '../../../support/memory-store';
import { readerOf } from '../../../support/reader-of';
import { until } from '../../../support/until';

const store = createMemoryStore();

/** Stores an object of frames whose texts name it, padded to `bytes` bytes each. */
async function source(name: string, offsets: readonly number[], bytes: (offset: number) => number) {
  const frames = offsets.map((offset) => {
    const text = `${name}:${offset}`.padEnd(bytes(offset), '.');
    const fields = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
    return encodeFrame(fields, Buffer.from(text), crc32);
  });
  const body = Buffer.concat(frames);
  const key = `frames/${name}`;
  await store.putIfAbsent(key, body);
  const span = { firstOffset: offsets[0]!, lastOffset: offsets.at(-1)! };
  return { rankKey: key, key, start: 0, end: body.length, ...span } satisfies FrameSource;
}

async function merged(sources: readonly FrameSource[]): Promise<string[]> {
  const merge = new FrameMerge(store, sources);
  const texts: string[] = [];
  do {
    for (let frame = merge.next(); frame !== null; frame = merge.next()) {
      const { window, start, end } = frame;
      texts.push(window.toString('latin1', start + FRAME_HEADER_BYTES, end).replace(/\.+$/, ''));
    }
  } while (await merge.load());
  await merge.close();
  return texts;
}

function numbers(count: number, step: number, first = 0): number[] {
  return Array.from({ length: count }, (_, i) => first + i * step);
}

it.each([
  ['few large windows', 3],
  ['many small windows', 90],
])('merges whole frames across windows: %s', async (_, count) => {
  const size = (offset: number) => (offset % 97 === 0 ? 600_000 : 8_000);
  const sources: FrameSource[] = [];
  for (let i = 0; i < count; i++) {
    // Every offset that is a multiple of 10 is in two of them; the smaller key wins.
    const own = numbers(120, count, i).filter((offset) => offset % 10 !== 0);
    const shared = numbers(120, count, i % 2 === 0 ? i : i - 1).filter((at) => at % 10 === 0);
    const offsets = [...new Set([...own, ...shared])].sort((a, b) => a - b);
    sources.push(await source(`${count}-${String(i).padStart(3, '0')}`, offsets, size));
  }
  const expected = new Map<number, string>();
  for (const { key } of sources) {
    const name = key.slice('frames/'.length);
    for (const offset of offsetsIn(key)) {
      if (!expected.has(offset)) expected.set(offset, `${name}:${offset}`);
    }
  }
  const inOrder = [...expected].sort((a, b) => a[0] - b[0]).map(([, text]) => text);
  expect(await merged(sources)).toEqual(inOrder);
});

function offsetsIn(key: string): number[] {
  const bytes = store.objects.get(key)!;
  const offsets: number[] = [];
  for (let at = 0; at < bytes.length; at += FRAME_HEADER_BYTES + bytes.readUInt32LE(at)) {
    offsets.push(Number(bytes.readBigUInt64LE(at + 8)));
  }
  return offsets;
}

/** The store, with a note of every window that is read. `onRead` may throw. */
function noted(onRead: (key: string) => void): ObjectStore {
  const open = async (key: string) => {
    const reader = await store.open(key);
    const read = async (position: number, length: number, into?: Buffer) => {
      onRead(key);
      return reader.read(position, length, into);
    };
    return readerOf({ ...reader, read });
  };
  return { ...store, open };
}

it('reads the windows ahead that are needed first', async () => {
  const count = 40;
  const sources: FrameSource[] = [];
  for (let i = 0; i < count; i++) {
    // Each has two windows.
    const offsets = numbers(100, 1_000, count - i);
    sources.push(await source(`turn-${String(i).padStart(2, '0')}`, offsets, () => 7_000));
  }
  const order = sources.map(({ key }) => key).reverse();
  const read: string[] = [];
  const merge = new FrameMerge(
    noted((key) => read.push(key)),
    sources,
  );
  expect(merge.next()).toBeNull();
  await merge.load();
  // Nothing else is known to be needed before the rest of the only source that was read.
  await until(() => read.length > count, 10_000, 'windows that are read ahead');
  expect([...read].sort()).toEqual([order[0], ...order].sort());
  do while (merge.next() !== null);
  while (await merge.load());
  expect([...read].sort()).toEqual([...order, ...order].sort());
  await merge.close();
});

it('throws an error of a window that was read ahead when the window is needed', async () => {
  const sources = [
    await source('early', numbers(10, 1), () => 10),
    await source('late', numbers(10, 1, 100), () => 10),
  ];
  const failure = new NightshiftError('object_store_failed', 'the disk is gone');
  const failing = noted((key) => {
    if (key.endsWith('late')) throw failure;
  });
  const merge = new FrameMerge(failing, sources);
  expect(await merge.load()).toBe(true);
  const offsets: number[] = [];
  for (let frame = merge.next(); frame !== null; frame = merge.next()) offsets.push(frame.offset);
  expect(offsets).toEqual(numbers(10, 1));
  await expect(merge.load()).rejects.toBe(failure);
  await merge.close();
});

it('chooses what a merge in memory chooses, whatever the sources share', async () => {
  const offsets = fc.uniqueArray(fc.nat(60), { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(fc.array(offsets, { maxLength: 30 }), fc.nat(), async (lists, seed) => {
      const sources: FrameSource[] = [];
      const expected = new Map<number, string>();
      for (const [i, list] of lists.entries()) {
        const name = `any-${seed}-${String(i).padStart(2, '0')}`;
        const ascending = [...list].sort((a, b) => a - b);
        // A window holds all of some sources, and a part of others.
        sources.push(await source(name, ascending, (at) => ((at + i) % 7 === 0 ? 200_000 : 20)));
        for (const at of list) if (!expected.has(at)) expected.set(at, `${name}:${at}`);
      }
      const inOrder = [...expected].sort((a, b) => a[0] - b[0]).map(([, text]) => text);
      expect(await merged(sources)).toEqual(inOrder);
      store.objects.clear();
    }),
    { numRuns: 30 },
  );
});

it.each([1, 10, 32, 33, 64, 128])('keeps the windows of %i sources within 24 MiB', (open) => {
  const pool = new WindowPool(open);
  const windows: Buffer[] = [];
  while (pool.hasSpare) windows.push(pool.acquire());
  expect(windows.length).toBeGreaterThan(open);
  const bytes = windows.reduce((sum, window) => sum + window.length, 0);
  expect(bytes).toBeLessThanOrEqual(24 * 1024 * 1024);
  pool.release(windows[0]!);
  expect(pool.acquire()).toBe(windows[0]);
});
