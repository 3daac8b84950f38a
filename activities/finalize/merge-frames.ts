import { isPreferred } from '../../core/journal/merge';
import type { ObjectStore } from '../../storage/object-store';
import { CursorHeap } from './cursor-heap';
import { SealCursor, type FrameSource, type MergedFrame } from './seal-cursor';

/** Sources that may be open at the same time: their windows are 32 MiB together. */
export const MAX_OPEN_SOURCES = 128;
/** Up to here there is room for each one's next window too. */
const MAX_READING_AHEAD = 64;
const MAX_BATCH_FRAMES = 2_000;

interface RankedCursor {
  readonly cursor: SealCursor;
  readonly rank: number;
  readonly offset: number;
}

/**
 * One frame for each offset in any of the sources, in order of offset, in batches: the best of those
 * that meet there (execution §2, Merge). A batch ends where a read is due, so windows held by it are
 * windows that are open anyway. Sources are opened when their first offset comes.
 * @throws object_corrupt, object_store_failed
 */
export async function* mergeFrames(
  store: ObjectStore,
  sources: readonly FrameSource[],
): AsyncGenerator<MergedFrame[]> {
  const readsAhead = mostOpen(sources) <= MAX_READING_AHEAD;
  const cursors = sources.map((source) => new SealCursor(store, source, { readsAhead }));
  try {
    yield* mergeCursors(cursors);
  } finally {
    for (const cursor of cursors) await cursor.close();
  }
}

async function* mergeCursors(cursors: readonly SealCursor[]): AsyncGenerator<MergedFrame[]> {
  const heap = new CursorHeap(cursors.map(ranked));
  let batch: MergedFrame[] = [];
  let best: MergedFrame | null = null;
  for (let top = heap.top; top !== undefined; top = heap.top) {
    const { cursor } = top;
    if (cursor.isLoaded) {
      const frame = cursor.frame();
      if (best === null || best.offset !== frame.offset) {
        if (best !== null) batch.push(best);
        best = frame;
      } else if (isPreferred(claim(frame), claim(best))) {
        best = frame;
      }
      cursor.advance();
    }
    if (!cursor.isLoaded || batch.length >= MAX_BATCH_FRAMES) {
      if (batch.length > 0) yield batch;
      batch = [];
      // Only now: what the consumer held of this cursor's window is done with.
      if (!cursor.isLoaded) await cursor.load();
    }
    if (cursor.offset === Number.POSITIVE_INFINITY) {
      await cursor.close();
      heap.removeTop();
    } else {
      heap.settleTop();
    }
  }
  if (best !== null) yield [...batch, best];
}

/** Sources whose spans of offsets meet in one point, at most. */
export function mostOpen(sources: readonly FrameSource[]): number {
  const starts = sources.map(({ firstOffset }) => firstOffset).sort((a, b) => a - b);
  const ends = sources.map(({ lastOffset }) => lastOffset).sort((a, b) => a - b);
  let most = 0;
  let ended = 0;
  starts.forEach((start, started) => {
    while ((ends[ended] ?? Number.POSITIVE_INFINITY) < start) ended++;
    most = Math.max(most, started + 1 - ended);
  });
  return most;
}

function ranked(cursor: SealCursor, rank: number): RankedCursor {
  return {
    cursor,
    rank,
    get offset() {
      return cursor.offset;
    },
  };
}

function claim({ kind, rankKey, position }: MergedFrame) {
  return { kind, objectKey: rankKey, position };
}
