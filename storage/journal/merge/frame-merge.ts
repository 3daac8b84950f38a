import { isPreferred } from '../../../core/journal/merge';
import { MergeMemory, type RunTotals } from '../../../core/journal/merge-memory';
import type { MergeProgram } from '../../../core/journal/merge-program';
import type { ObjectStore } from '../../object-store';
import type { AnswerStream } from '../journal-store';
import { CursorHeap } from './cursor-heap';
import type { FrameSource, MergedFrame } from './frame-source';
import { SealCursor } from './seal-cursor';
import { WindowPool } from './window-pool';

/** Sources that may be open at the same time. */
export const MAX_OPEN_SOURCES = 128;

/** For the lines that a merge copies: four blocks of a result file. */
const LINE_BYTES = 8 * 1024 * 1024;

/**
 * One frame for each offset in any of the sources, in order of offset
 * (docs/design/journal.md#duplicate-answers). A source is opened when its first offset is reached.
 */
export class FrameMerge implements AnswerStream {
  readonly #cursors: readonly SealCursor[];
  readonly #heap: CursorHeap;
  readonly #windows: WindowPool;
  readonly #memory: MergeMemory;
  readonly lineMemory: Buffer | null;
  /**
   * Cursors at the current offset, taken off the heap, if there are several. Their windows stay untouched
   * as long as the caller uses the returned frame, which is in one of them.
   */
  #current: SealCursor[] = [];
  #isReturned = false;
  /** Cursors that have begun, and the place of the first one that may not have. */
  readonly #begun = new Set<SealCursor>();
  #notBegun = 0;
  #ended: SealCursor[] = [];

  /** @param program for `copyLines`, which pays off if there is much to merge; no other merge may use it */
  constructor(
    store: ObjectStore,
    sources: readonly FrameSource[],
    program: MergeProgram | null = null,
  ) {
    const largest = sources.reduce((most, { start, end }) => Math.max(most, end - start), 0);
    const windows = (this.#windows = new WindowPool(mostOpen(sources), largest));
    const inOrder = [...sources].sort((a, b) => a.firstOffset - b.firstOffset);
    const memory = (this.#memory =
      program === null
        ? MergeMemory.plain(sources.length)
        : MergeMemory.withProgram(program, sources.length, LINE_BYTES + windows.bytes));
    this.lineMemory = memory.take(LINE_BYTES);
    windows.useMemory(memory);
    this.#cursors = inOrder.map(
      (source, cursor) => new SealCursor({ memory, cursor }, store, source, windows),
    );
    this.#heap = new CursorHeap(memory);
  }

  copyLines(limit: number, tag: number, into: Buffer): number {
    if (this.#isReturned) this.#advance();
    if (this.#current.length > 0) return 0;
    return this.#memory.copyRun(limit, this.#heap.size, tag, into);
  }

  copied(): RunTotals {
    return this.#memory.totals();
  }

  next(): MergedFrame | null {
    if (this.#isReturned) this.#advance();
    const top = this.#top;
    const { secondOffset } = this.#heap;
    if (top === undefined || top.offset === secondOffset || this.#current.length > 0) {
      return this.#nextOfSeveral();
    }
    this.#isReturned = top.isLoaded;
    return top.isLoaded ? top : null;
  }

  async load(): Promise<boolean> {
    for (const cursor of this.#ended) {
      this.#begun.delete(cursor);
      await cursor.close();
    }
    this.#ended = [];
    const top = this.#top;
    if (top === undefined) return false;
    this.#begun.add(top);
    await top.load();
    this.#heap.settleTop();
    this.#readAhead();
    return true;
  }

  /** Whether every frame was taken, so that nothing is being read any more. */
  get isOver(): boolean {
    return this.#top === undefined && this.#current.length === 0;
  }

  /** What was not taken. The frame that `next` has returned last counts as not taken. */
  rest(): FrameSource[] {
    const open = this.#cursors.filter(({ offset }) => offset !== Number.POSITIVE_INFINITY);
    return open.map((cursor) => cursor.rest());
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const cursor of this.#cursors) await cursor.close();
  }

  get #top(): SealCursor | undefined {
    return this.#cursors[this.#heap.top];
  }

  /** Begins to read the windows that are needed first, as many as there are spare buffers. */
  #readAhead(): void {
    while (this.#windows.hasSpare) {
      const cursor = this.#neededFirst();
      if (cursor === null) return;
      this.#begun.add(cursor);
      cursor.readAhead();
    }
  }

  /** Of the sources that are open and the one that is opened next. */
  #neededFirst(): SealCursor | null {
    while (this.#cursors[this.#notBegun]?.isBegun === true) this.#notBegun++;
    let first = this.#cursors[this.#notBegun] ?? null;
    let neededAt = first?.nextNeededAt ?? Number.POSITIVE_INFINITY;
    for (const cursor of this.#begun) {
      const { nextNeededAt } = cursor;
      if (nextNeededAt < neededAt) [first, neededAt] = [cursor, nextNeededAt];
    }
    return first;
  }

  /** The preferred answer of the cursors that share the next offset. */
  #nextOfSeveral(): MergedFrame | null {
    const current = this.#current;
    for (let top = this.#top; top !== undefined; top = this.#top) {
      if (current[0] !== undefined && top.offset !== current[0].offset) break;
      if (!top.isLoaded) return null;
      current.push(top);
      this.#heap.removeTop();
    }
    this.#isReturned = current.length > 0;
    return this.#isReturned ? current.reduce(preferred) : null;
  }

  /**
   * Moves the cursors at the returned offset to their next frames. One at the end of its window keeps
   * its offset until it is loaded, so it is the top of the heap and is loaded first.
   */
  #advance(): void {
    this.#isReturned = false;
    const top = this.#top;
    if (this.#current.length === 0 && top !== undefined) {
      top.advance();
      if (top.offset !== Number.POSITIVE_INFINITY) return this.#heap.settleTop();
      this.#ended.push(top);
      return this.#heap.removeTop();
    }
    for (const cursor of this.#current) {
      cursor.advance();
      if (cursor.offset === Number.POSITIVE_INFINITY) this.#ended.push(cursor);
      else this.#heap.add(cursor.cursor);
    }
    this.#current.length = 0;
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
