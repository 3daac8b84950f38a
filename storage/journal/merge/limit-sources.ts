import { randomBytes } from 'node:crypto';
import { OBJECT_HEADER_BYTES } from '../../../core/journal/magic';
import { encodeSealHeader } from '../../../core/journal/seal';
import { batchPrefix } from '../../../core/names/object-names';
import type { ObjectStore } from '../../object-store';
import type { AnswerStream } from '../journal-store';
import { FrameMerge, MAX_OPEN_SOURCES, mostOpen } from './frame-merge';
import type { FrameSource } from './frame-source';

const BLOCK_BYTES = 1024 * 1024;

/** The store and batch of the scratch objects. */
export interface ScratchPlace {
  readonly store: ObjectStore;
  readonly batchId: string;
  /** Called between groups; throws to abort. */
  check(): void;
}

/** Sources few enough to be merged in one pass, and the scratch objects among them. */
export interface LimitedSources {
  readonly sources: readonly FrameSource[];
  /** To be deleted after the merge. */
  readonly scratchKeys: readonly string[];
}

/**
 * Merges groups of 128 sources into one scratch object each, until at most 128 sources are open at the
 * same time. A group keeps the rank of its first seal, and groups follow key order, so a merge of the
 * groups chooses the same answers as a merge of all sources.
 * @throws object_corrupt, object_store_failed
 */
export async function limitSources(
  place: ScratchPlace,
  sources: readonly FrameSource[],
): Promise<LimitedSources> {
  let current = sources;
  const scratchKeys: string[] = [];
  while (mostOpen(current) > MAX_OPEN_SOURCES) {
    const merged: FrameSource[] = [];
    for (let i = 0; i < current.length; i += MAX_OPEN_SOURCES) {
      place.check();
      const source = await writeScratch(place, current.slice(i, i + MAX_OPEN_SOURCES));
      scratchKeys.push(source.key);
      merged.push(source);
    }
    current = merged;
  }
  return { sources: current, scratchKeys };
}

async function writeScratch(
  { store, batchId }: ScratchPlace,
  group: readonly FrameSource[],
): Promise<FrameSource> {
  const key = `${batchPrefix(batchId)}scratch/${randomBytes(8).toString('hex')}.frames`;
  let end = OBJECT_HEADER_BYTES;
  async function* bytes() {
    yield encodeSealHeader();
    for await (const block of mergedFrames(store, group)) {
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

async function* mergedFrames(
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

/** Every block is the same buffer, because the store writes a block before it requests the next one. */
async function* inBlocks(frames: AnswerStream): AsyncGenerator<Buffer> {
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
