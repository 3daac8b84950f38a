import { randomBytes } from 'node:crypto';
import { encodeSealHeader } from '../../core/journal/seal';
import { OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import { batchPrefix } from '../../core/plan/keys';
import type { ObjectStore } from '../../storage/object-store';
import { MAX_OPEN_SOURCES, mergeFrames, mostOpen } from './merge-frames';
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
  let parts: Buffer[] = [];
  let byteLength = 0;
  for await (const batch of mergeFrames(store, group)) {
    for (const { window, start, end } of batch) {
      parts.push(window.subarray(start, end));
      byteLength += end - start;
      if (byteLength < BLOCK_BYTES) continue;
      yield Buffer.concat(parts, byteLength);
      parts = [];
      byteLength = 0;
    }
  }
  if (byteLength > 0) yield Buffer.concat(parts, byteLength);
}
