/** The part of a merge's memory that a heap uses. */
export interface HeapMemory {
  /** Of the next frame of each cursor, by its number. */
  readonly offsets: Float64Array;
  /** Numbers of the cursors in the heap, the smallest offset first. */
  readonly heap: Uint32Array;
}

/**
 * A binary heap of a few cursors, the smallest offset first. A merge mostly moves the top forward. The
 * offset of the top may therefore change in place if `settleTop` is called afterwards: it restores the
 * order, with two comparisons if the top stays first.
 *
 * It is in the memory of the merge, where a program moves cursors too (core/assembly/frame-run.ts).
 */
export class CursorHeap {
  readonly #offsets: Float64Array;
  readonly #heap: Uint32Array;
  #size: number;

  /** Begins with all cursors. Their offsets must ascend with their numbers. */
  constructor({ offsets, heap }: HeapMemory) {
    this.#offsets = offsets;
    this.#heap = heap;
    this.#size = heap.length;
    for (let cursor = 0; cursor < heap.length; cursor++) heap[cursor] = cursor;
  }

  get size(): number {
    return this.#size;
  }

  /** Number of the first cursor; -1 if there is none. */
  get top(): number {
    return this.#size === 0 ? -1 : (this.#heap[0] ?? -1);
  }

  /** The smallest offset of all cursors but the top; infinity if there is none. */
  get secondOffset(): number {
    const left = this.#size > 1 ? this.#offsetAt(1) : Number.POSITIVE_INFINITY;
    const right = this.#size > 2 ? this.#offsetAt(2) : Number.POSITIVE_INFINITY;
    return left < right ? left : right;
  }

  add(cursor: number): void {
    const offset = this.#offsets[cursor] ?? 0;
    let at = this.#size++;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#offsetAt(above) <= offset) break;
      this.#heap[at] = this.#heap[above] ?? 0;
      at = above;
    }
    this.#heap[at] = cursor;
  }

  removeTop(): void {
    if (this.#size === 0) return;
    this.#heap[0] = this.#heap[--this.#size] ?? 0;
    this.settleTop();
  }

  settleTop(): void {
    const heap = this.#heap;
    const size = this.#size;
    if (size === 0) return;
    const moving = heap[0] ?? 0;
    const offset = this.#offsets[moving] ?? 0;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && this.#offsetAt(child + 1) < this.#offsetAt(child)) child++;
      if (this.#offsetAt(child) >= offset) break;
      heap[at] = heap[child] ?? 0;
      at = child;
    }
    heap[at] = moving;
  }

  #offsetAt(place: number): number {
    return this.#offsets[this.#heap[place] ?? 0] ?? 0;
  }
}
