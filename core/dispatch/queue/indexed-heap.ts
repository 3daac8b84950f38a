/** An element of at most one {@link IndexedHeap} at a time. */
export class HeapEntry {
  /** The smallest key is first. Call `update` after changing it. */
  key = 0;
  /** Breaks ties between equal keys: the smaller one is first. */
  order = 0;
  /** Index in the heap; -1 while it is in none. */
  at = -1;
}

/** Children of a node. With four, whose keys share a cache line, a heap is half as deep as with two. */
const ARITY = 8;

/** V8 keeps arrays of up to 64 bytes with their object; larger ones cost an allocation of their own. */
const INITIAL_SIZE = 8;

/**
 * A heap whose elements store their index. So an element whose key changes, or that leaves from the middle,
 * is found without a search: every change takes O(log n) steps. The usual heap packages do not store the
 * index, and need O(n) steps for both.
 */
export class IndexedHeap<E extends HeapEntry> {
  readonly #entries: E[] = [];
  /** The keys again, side by side: comparing them must not fetch one object after the other. */
  #keys = new Float64Array(INITIAL_SIZE);

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
    if (at === this.#keys.length) this.#grow();
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

  /** Takes over changed keys of elements whose order is still the same. */
  refreshKeys(): void {
    for (const [at, { key }] of this.#entries.entries()) this.#keys[at] = key;
  }

  #place(entry: E, at: number): void {
    if (at > 0 && this.#isBefore(entry, parentOf(at))) this.#siftUp(entry, at);
    else this.#siftDown(entry, at);
  }

  /** Moves a gap from `at` towards the root until `entry` fits into it. */
  #siftUp(entry: E, from: number): void {
    let at = from;
    while (at > 0) {
      const parent = parentOf(at);
      if (!this.#isBefore(entry, parent)) break;
      this.#set(at, this.#entries[parent] as E);
      at = parent;
    }
    this.#set(at, entry);
  }

  /** Moves a gap from `at` towards the leaves until `entry` fits into it. */
  #siftDown(entry: E, from: number): void {
    let at = from;
    for (;;) {
      const child = this.#leastChild(at);
      if (child === -1 || !this.#isAfter(entry, child)) break;
      this.#set(at, this.#entries[child] as E);
      at = child;
    }
    this.#set(at, entry);
  }

  #leastChild(at: number): number {
    const first = ARITY * at + 1;
    const end = Math.min(first + ARITY, this.#entries.length);
    if (first >= end) return -1;
    const keys = this.#keys;
    let least = first;
    let leastKey = keys[first] as number;
    for (let child = first + 1; child < end; child++) {
      const key = keys[child] as number;
      if (key > leastKey || (key === leastKey && !this.#isEarlier(child, least))) continue;
      least = child;
      leastKey = key;
    }
    return least;
  }

  #isBefore(entry: E, at: number): boolean {
    const key = this.#keys[at] as number;
    return entry.key === key ? entry.order < this.#orderAt(at) : entry.key < key;
  }

  #isAfter(entry: E, at: number): boolean {
    const key = this.#keys[at] as number;
    return entry.key === key ? entry.order > this.#orderAt(at) : entry.key > key;
  }

  #isEarlier(a: number, b: number): boolean {
    return this.#orderAt(a) < this.#orderAt(b);
  }

  #orderAt(at: number): number {
    return (this.#entries[at] as E).order;
  }

  #set(at: number, entry: E): void {
    this.#entries[at] = entry;
    this.#keys[at] = entry.key;
    entry.at = at;
  }

  #grow(): void {
    const keys = new Float64Array(2 * this.#keys.length);
    keys.set(this.#keys);
    this.#keys = keys;
  }
}

function parentOf(at: number): number {
  return (at - 1) >> 3;
}
