import { isPreferred } from '../../core/journal/merge';
import type { ObjectStore } from '../../storage/object-store';
import { CursorHeap } from './cursor-heap';
import { SealCursor, type FrameSource, type MergedFrame } from './seal-cursor';
import { WindowPool } from './window-pool';

/** Sources that may be open at the same time. */
export const MAX_OPEN_SOURCES = 128;

/** Frames one after the other, read in between. */
export interface FrameRun {
  /**
   * The next frame, good until the next call here; null where `load` is due first. The consumer may
   * wait as long as it likes in between.
   */
  next(): MergedFrame | null;
  /** Reads on; false where the run has ended. @throws object_corrupt, object_store_failed */
  load(): Promise<boolean>;
}

/**
 * One frame for each offset in any of the sources, in order of offset: the best of those that meet
 * there (execution §2, Merge). Sources are opened when their first offset comes. To be closed.
 */
export class FrameMerge implements FrameRun {
  readonly #cursors: readonly SealCursor[];
  readonly #heap: CursorHeap<SealCursor>;
  /** Cursors at the offset at hand, taken off the heap: a window stays while one of them is in it. */
  #met: SealCursor[] = [];
  #isGiven = false;
  #ended: SealCursor[] = [];

  constructor(store: ObjectStore, sources: readonly FrameSource[]) {
    const windows = new WindowPool(mostOpen(sources));
    this.#cursors = sources.map((source) => new SealCursor(store, source, windows));
    this.#heap = new CursorHeap(this.#cursors);
  }

  next(): MergedFrame | null {
    if (this.#isGiven) this.#pass();
    const met = this.#met;
    for (let top = this.#heap.top; top !== undefined; top = this.#heap.top) {
      if (met[0] !== undefined && top.offset !== met[0].offset) break;
      if (!top.isLoaded) return null;
      met.push(top);
      this.#heap.removeTop();
    }
    this.#isGiven = met.length > 0;
    return this.#isGiven ? met.reduce(preferred) : null;
  }

  async load(): Promise<boolean> {
    for (const cursor of this.#ended) await cursor.close();
    this.#ended = [];
    const { top } = this.#heap;
    if (top === undefined) return false;
    await top.load();
    this.#heap.settleTop();
    return true;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const cursor of this.#cursors) await cursor.close();
  }

  /** Moves those on whose offset was given. One behind its window keeps its offset: it is loaded next. */
  #pass(): void {
    for (const cursor of this.#met) {
      cursor.advance();
      if (cursor.offset === Number.POSITIVE_INFINITY) this.#ended.push(cursor);
      else this.#heap.add(cursor);
    }
    this.#met.length = 0;
    this.#isGiven = false;
  }
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

function preferred(current: SealCursor, candidate: SealCursor): SealCursor {
  return isPreferred(claim(candidate), claim(current)) ? candidate : current;
}

function claim({ kind, rankKey, position }: MergedFrame) {
  return { kind, objectKey: rankKey, position };
}
