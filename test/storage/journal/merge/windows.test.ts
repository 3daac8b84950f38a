import { crc32 } from 'node:zlib';
import { FrameMerge } from '../../../../storage/journal/merge/frame-merge';
import type { FrameSource } from '../../../../storage/journal/merge/frame-source';
import { WindowPool } from '../../../../storage/journal/merge/window-pool';
import { NO_USAGE } from '../../../../core/batch/counts';
import { encodeFrame, FRAME_HEADER_BYTES, FRAME_KIND } from '../../../../core/journal/frame';
import { createMemoryStore } from '../../../support/memory-store';

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
  ['few sources, whose next windows are read ahead', 3],
  ['more sources than there is room to read ahead for', 90],
])('merges whole frames across windows: %s', async (_, count) => {
  const size = (offset: number) => (offset % 97 === 0 ? 400_000 : 4_000);
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

it.each([1, 10, 32, 33, 64, 65, 128])('keeps the windows of %i sources within 16 MiB', (open) => {
  const pool = new WindowPool(open);
  const windows = open * (pool.readsAhead ? 2 : 1);
  expect(windows * pool.windowBytes).toBeLessThanOrEqual(16 * 1024 * 1024);
  const window = pool.acquire();
  pool.release(window);
  expect(pool.acquire()).toBe(window);
});
