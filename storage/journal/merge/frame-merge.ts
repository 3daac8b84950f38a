import { isPreferred } from '../../../core/journal/merge';
import type { ObjectStore } from '../../object-store';
import type { AnswerStream } from '../journal-store';
import { CursorHeap } from './cursor-heap';
import type { FrameSource, MergedFrame } from './frame-source';
import { SealCursor } from './seal-cursor';
import { WindowPool } from './window-pool';

/** Sources that may be open at the same time. */
export const MAX_OPEN_SOURCES = 128;

/**
 * One frame for each offset in any of the sources, in order of offset
 * (docs/design/journal.md#duplicate-answers). A source is opened when its first offset is reached.
 */
export class FrameMerge implements AnswerStream {
  readonly #cursors: readonly SealCursor[];
  readonly #heap: CursorHeap<SealCursor>;
  /**
   * Cursors at the current offset, taken off the heap. Their windows stay untouched as long as the
   * caller uses the returned frame, which is in one of them.
   */
  #current: SealCursor[] = [];
  #isReturned = false;
  /** The cursor that was loaded last. */
  #latest: SealCursor | null = null;
  #ended: SealCursor[] = [];

  constructor(store: ObjectStore, sources: readonly FrameSource[]) {
    // One more is prepared.
    const windows = new WindowPool(mostOpen(sources) + 1);
    const inOrder = [...sources].sort((a, b) => a.firstOffset - b.firstOffset);
    this.#cursors = inOrder.map((source) => new SealCursor(store, source, windows));
    this.#heap = new CursorHeap(this.#cursors);
  }

  next(): MergedFrame | null {
    if (this.#isReturned) this.#advance();
    const current = this.#current;
    for (let top = this.#heap.top; top !== undefined; top = this.#heap.top) {
      if (current[0] !== undefined && top.offset !== current[0].offset) break;
      if (!top.isLoaded) return null;
      current.push(top);
      this.#heap.removeTop();
    }
    this.#isReturned = current.length > 0;
    return this.#isReturned ? current.reduce(preferred) : null;
  }

  async load(): Promise<boolean> {
    for (const cursor of this.#ended) await cursor.close();
    this.#ended = [];
    const { top } = this.#heap;
    if (top === undefined) return false;
    await top.load();
    this.#heap.settleTop();
    await this.#prepareAfter(top);
    return true;
  }

  /** Begins to read the source that is needed after `cursor`, so that the merge need not wait for it. */
  async #prepareAfter(cursor: SealCursor): Promise<void> {
    if (this.#latest === cursor) return;
    this.#latest = cursor;
    await this.#cursors[this.#cursors.indexOf(cursor) + 1]?.prepare();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const cursor of this.#cursors) await cursor.close();
  }

  /**
   * Moves the cursors at the returned offset to their next frames. One at the end of its window keeps
   * its offset until it is loaded, so it is the top of the heap and is loaded first.
   */
  #advance(): void {
    for (const cursor of this.#current) {
      cursor.advance();
      if (cursor.offset === Number.POSITIVE_INFINITY) this.#ended.push(cursor);
      else this.#heap.add(cursor);
    }
    this.#current.length = 0;
    this.#isReturned = false;
  }
}

/** The largest number of sources whose spans of offsets share one offset. */
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
  return isPreferred(claimOf(candidate), claimOf(current)) ? candidate : current;
}

function claimOf({ kind, rankKey, position }: MergedFrame) {
  return { kind, objectKey: rankKey, position };
}
