/** An element of at most one {@link IndexedHeap} at a time. */
export class HeapEntry {
  /** The smallest key is first. Call `update` after changing it. */
  key = 0;
  /** Breaks ties between equal keys: the smaller one is first. */
  order = 0;
  /** Where its heap keeps it; -1 while it is in none. */
  slot = -1;
}

/** V8 keeps arrays of up to 64 bytes with their object; larger ones cost an allocation of their own. */
const INITIAL_SIZE = 8;

/**
 * A binary heap whose elements are found without a search: every change takes O(log n) steps, also if the
 * key of an element changes or it leaves from the middle. The usual heap packages need O(n) steps for both.
 *
 * An element gets a slot when it comes, and keeps it until it leaves. What the heap orders are numbers of
 * slots, beside copies of their keys, in arrays of numbers. So to move an element does not touch it: with
 * thousands of elements, most are not in the processor's cache.
 */
export class IndexedHeap<E extends HeapEntry> {
  /** By slot: the element, and its place in the heap. */
  readonly #entries: (E | undefined)[] = [];
  #places = new Int32Array(INITIAL_SIZE);
  /** By place: the key and order of an element, and its slot. Free slots follow those in use. */
  #keys = new Float64Array(INITIAL_SIZE);
  #orders = new Float64Array(INITIAL_SIZE);
  #slots = numbered(INITIAL_SIZE);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The element with the smallest key; undefined if the heap is empty. */
  get first(): E | undefined {
    return this.#size === 0 ? undefined : this.#entries[this.#slots[0] as number];
  }

  push(entry: E): void {
    const at = this.#size++;
    // One place more: a key of infinity follows the last one.
    if (this.#size === this.#keys.length) this.#grow();
    this.#endAt(this.#size);
    entry.slot = this.#slots[at] as number;
    this.#entries[entry.slot] = entry;
    this.#siftUp(at, entry.key, entry.order, entry.slot);
  }

  /** Removes an element that is in the heap. */
  remove(entry: E): void {
    const { slot } = entry;
    entry.slot = -1;
    this.#entries[slot] = undefined;
    const at = this.#places[slot] as number;
    const last = --this.#size;
    const key = this.#keys[last] as number;
    const order = this.#orders[last] as number;
    const moved = this.#slots[last] as number;
    this.#slots[last] = slot;
    this.#endAt(last);
    if (at !== last) this.#place(at, key, order, moved);
  }

  /** Restores the order after `key` or `order` of an element in the heap changed. */
  update({ key, order, slot }: E): void {
    this.#place(this.#places[slot] as number, key, order, slot);
  }

  /** Takes over changed keys of elements whose order is still the same. */
  refreshKeys(): void {
    for (let at = 0; at < this.#size; at++) {
      this.#keys[at] = this.#entries[this.#slots[at] as number]?.key as number;
    }
  }

  #place(at: number, key: number, order: number, slot: number): void {
    if (at > 0 && this.#isAfter(parentOf(at), key, order)) this.#siftUp(at, key, order, slot);
    else this.#siftDown(at, key, order, slot);
  }

  /** Moves a gap from `at` towards the root until the element fits into it. */
  #siftUp(from: number, key: number, order: number, slot: number): void {
    let at = from;
    while (at > 0) {
      const parent = parentOf(at);
      if (!this.#isAfter(parent, key, order)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#set(at, key, order, slot);
  }

  /** Moves a gap from `at` towards the leaves until the element fits into it. */
  #siftDown(from: number, key: number, order: number, slot: number): void {
    let at = from;
    for (let left = 2 * at + 1; left < this.#size; left = 2 * at + 1) {
      const child = this.#lesser(left);
      if (this.#isAfter(child, key, order)) break;
      this.#move(child, at);
      at = child;
    }
    this.#set(at, key, order, slot);
  }

  /**
   * The lesser one of two siblings. Without a branch, because processors guess wrong every other time, and
   * that costs more than all the rest. Ties are rare enough.
   */
  #lesser(left: number): number {
    const right = left + 1;
    const key = this.#keys[left] as number;
    const other = this.#keys[right] as number;
    if (key !== other) return left + Number(other < key);
    return (this.#orders[right] as number) < (this.#orders[left] as number) ? right : left;
  }

  #isAfter(at: number, key: number, order: number): boolean {
    const other = this.#keys[at] as number;
    return other === key ? (this.#orders[at] as number) > order : other > key;
  }

  #move(from: number, to: number): void {
    this.#set(
      to,
      this.#keys[from] as number,
      this.#orders[from] as number,
      this.#slots[from] as number,
    );
  }

  #set(at: number, key: number, order: number, slot: number): void {
    this.#keys[at] = key;
    this.#orders[at] = order;
    this.#slots[at] = slot;
    this.#places[slot] = at;
  }

  /** The last element may have no sibling. What stands there instead is never less than it. */
  #endAt(size: number): void {
    this.#keys[size] = Infinity;
    this.#orders[size] = Infinity;
  }

  #grow(): void {
    const length = 2 * this.#keys.length;
    this.#places = grown(this.#places, new Int32Array(length));
    this.#keys = grown(this.#keys, new Float64Array(length));
    this.#orders = grown(this.#orders, new Float64Array(length));
    this.#slots = grown(this.#slots, numbered(length));
  }
}

/** 0, 1, 2 and so on: slots that are all free. */
function numbered(length: number): Int32Array<ArrayBuffer> {
  const numbers = new Int32Array(length);
  for (let at = 0; at < length; at++) numbers[at] = at;
  return numbers;
}

function grown<A extends Float64Array | Int32Array>(from: A, to: A): A {
  to.set(from);
  return to;
}

function parentOf(at: number): number {
  return (at - 1) >> 1;
}
