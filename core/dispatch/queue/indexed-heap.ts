/** An element of at most one {@link IndexedHeap} at a time. */
export class HeapEntry {
  /** The smallest key is first. Call `update` after changing it. */
  key = 0;
  /** Breaks ties between equal keys: the smaller one is first. */
  order = 0;
  /** Index in the heap; -1 while it is in none. */
  at = -1;
}

/**
 * A binary heap whose elements store their index. So an element whose key changes, or that leaves from the
 * middle, is found without a search: every change takes O(log n) steps. The usual heap packages do not store
 * the index, and need O(n) steps for both.
 */
export class IndexedHeap<E extends HeapEntry> {
  readonly #entries: E[] = [];

  get size(): number {
    return this.#entries.length;
  }

  /** The element with the smallest key; undefined if the heap is empty. */
  get first(): E | undefined {
    return this.#entries[0];
  }

  push(entry: E): void {
    const at = this.#entries.length;
    this.#entries.push(entry);
    this.#siftUp(entry, at);
  }

  /** Removes an element that is in the heap. */
  remove(entry: E): void {
    const { at } = entry;
    entry.at = -1;
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) this.#place(last, at);
  }

  /** Restores the order after `key` or `order` of an element in the heap changed. */
  update(entry: E): void {
    this.#place(entry, entry.at);
  }

  #place(entry: E, at: number): void {
    const parent = this.#entries[(at - 1) >> 1];
    if (at > 0 && parent !== undefined && isBefore(entry, parent)) this.#siftUp(entry, at);
    else this.#siftDown(entry, at);
  }

  /** Moves a gap from `at` towards the root until `entry` fits into it. */
  #siftUp(entry: E, at: number): void {
    const entries = this.#entries;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = entries[above] as E;
      if (!isBefore(entry, parent)) break;
      entries[at] = parent;
      parent.at = at;
      at = above;
    }
    entries[at] = entry;
    entry.at = at;
  }

  /** Moves a gap from `at` towards the leaves until `entry` fits into it. */
  #siftDown(entry: E, at: number): void {
    const entries = this.#entries;
    const size = entries.length;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      let child = entries[below] as E;
      if (below + 1 < size) {
        const right = entries[below + 1] as E;
        if (isBefore(right, child)) {
          child = right;
          below++;
        }
      }
      if (!isBefore(child, entry)) break;
      entries[at] = child;
      child.at = at;
      at = below;
    }
    entries[at] = entry;
    entry.at = at;
  }
}

function isBefore(a: HeapEntry, b: HeapEntry): boolean {
  return a.key === b.key ? a.order < b.order : a.key < b.key;
}
