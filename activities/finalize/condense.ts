import { randomBytes } from 'node:crypto';
import { encodeSealHeader } from '../../core/journal/seal';
import { OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import { batchPrefix } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import { FrameMerge, MAX_OPEN_SOURCES, mostOpen, type FrameRun } from './merge-frames';
import type { FrameSource } from './seal-cursor';

const BLOCK_BYTES = 1024 * 1024;

/** Sources few enough to be merged in one pass, and the scratch objects among them. */
export interface Condensed {
  readonly sources: readonly FrameSource[];
  /** To be deleted after the merge. */
  readonly scratchKeys: readonly string[];
}

/**
 * The first of two passes, where more than 128 sources would be open at once: groups of 128 become
 * one scratch object each. Groups follow key order, so what is chosen stays what one pass would have
 * chosen. @throws object_corrupt, object_store_failed
 */
export async function condense(
  place: { readonly store: ObjectStore; readonly batchId: string; check(): void },
  sources: readonly FrameSource[],
): Promise<Condensed> {
  let level = sources;
  const scratchKeys: string[] = [];
  while (mostOpen(level) > MAX_OPEN_SOURCES) {
    const condensed: FrameSource[] = [];
    for (let i = 0; i < level.length; i += MAX_OPEN_SOURCES) {
      place.check();
      const source = await writeScratch(place, level.slice(i, i + MAX_OPEN_SOURCES));
      scratchKeys.push(source.key);
      condensed.push(source);
    }
    level = condensed;
  }
  return { sources: level, scratchKeys };
}

async function writeScratch(
  { store, batchId }: { readonly store: ObjectStore; readonly batchId: string },
  group: readonly FrameSource[],
): Promise<FrameSource> {
  const key = `${batchPrefix(batchId)}scratch/${randomBytes(8).toString('hex')}.frames`;
  let end = OBJECT_HEADER_BYTES;
  async function* bytes() {
    yield encodeSealHeader();
    for await (const block of framesInBlocks(store, group)) {
      end += block.length;
      yield block;
    }
  }
  await store.putIfAbsent(key, bytes());
  return {
    rankKey: group[0]?.rankKey ?? key,
    key,
    start: OBJECT_HEADER_BYTES,
    end,
    firstOffset: Math.min(...group.map(({ firstOffset }) => firstOffset)),
    lastOffset: Math.max(...group.map(({ lastOffset }) => lastOffset)),
  };
}

async function* framesInBlocks(
  store: ObjectStore,
  group: readonly FrameSource[],
): AsyncGenerator<Buffer> {
  const frames = new FrameMerge(store, group);
  try {
    yield* inBlocks(frames);
  } finally {
    await frames.close();
  }
}

/** Every block is the same buffer: the store is done with one when it asks for the next. */
async function* inBlocks(frames: FrameRun): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  let used = 0;
  do {
    for (let frame = frames.next(); frame !== null; frame = frames.next()) {
      const { window, start, end } = frame;
      if (used > 0 && used + end - start > BLOCK_BYTES) {
        yield block.subarray(0, used);
        used = 0;
      }
      if (end - start > BLOCK_BYTES) yield window.subarray(start, end);
      else used += window.copy(block, used, start, end);
    }
  } while (await frames.load());
  if (used > 0) yield block.subarray(0, used);
}
