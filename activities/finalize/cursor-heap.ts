/** What a heap is ordered by: offset first, then rank. */
export interface Ranked {
  readonly offset: number;
  readonly rank: number;
}

/**
 * A binary heap of a few cursors, smallest first. The top may be moved on in place: `settleTop` puts
 * it where it belongs now, at two comparisons when it stays first.
 */
export class CursorHeap<T extends Ranked> {
  readonly #items: T[];

  constructor(items: readonly T[]) {
    // A sorted array is a heap.
    this.#items = [...items].sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  get top(): T | undefined {
    return this.#items[0];
  }

  removeTop(): void {
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return;
    this.#items[0] = last;
    this.settleTop();
  }

  settleTop(): void {
    const items = this.#items;
    const moving = items[0];
    if (moving === undefined) return;
    let at = 0;
    for (;;) {
      const left = items[2 * at + 1];
      if (left === undefined) break;
      const right = items[2 * at + 2];
      const isRight = right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (!isBefore(child, moving)) break;
      items[at] = child;
      at = 2 * at + (isRight ? 2 : 1);
    }
    items[at] = moving;
  }
}

function isBefore(a: Ranked, b: Ranked): boolean {
  return a.offset < b.offset || (a.offset === b.offset && a.rank < b.rank);
}
