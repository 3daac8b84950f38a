/** An item of the heap; `offset` is that of the cursor's next frame. */
export interface Ordered {
  readonly offset: number;
}

/**
 * A binary heap of a few cursors, the smallest offset first. A merge mostly moves the top forward. The
 * offset of the top may therefore change in place if `settleTop` is called afterwards: it restores the
 * order, with two comparisons if the top stays first.
 */
export class CursorHeap<T extends Ordered> {
  readonly #items: T[];

  constructor(items: readonly T[]) {
    this.#items = [...items].sort((a, b) => a.offset - b.offset);
  }

  get top(): T | undefined {
    return this.#items[0];
  }

  /** The smallest offset of all items but the top; infinity if there is none. */
  get secondOffset(): number {
    const left = this.#items[1]?.offset ?? Number.POSITIVE_INFINITY;
    const right = this.#items[2]?.offset ?? Number.POSITIVE_INFINITY;
    return left < right ? left : right;
  }

  add(item: T): void {
    const items = this.#items;
    let at = items.length;
    for (;;) {
      const above = (at - 1) >> 1;
      const parent = items[above];
      if (parent === undefined || parent.offset <= item.offset) break;
      items[at] = parent;
      at = above;
    }
    items[at] = item;
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
      const isRight = right !== undefined && right.offset < left.offset;
      const child = isRight ? right : left;
      if (child.offset >= moving.offset) break;
      items[at] = child;
      at = 2 * at + (isRight ? 2 : 1);
    }
    items[at] = moving;
  }
}
