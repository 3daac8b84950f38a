'use strict';

/** The peer of row F1: a binary heap of requests by a number, without flows, fairness or removal. */
class PlainHeap {
  #items = [];

  push(item) {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (items[above].key <= item.key) break;
      items[at] = items[above];
      at = above;
    }
    items[at] = item;
  }

  pop() {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (items.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && items[below + 1].key < items[below].key) below++;
      if (last.key <= items[below].key) break;
      items[at] = items[below];
      at = below;
    }
    items[at] = last;
    return first;
  }
}

module.exports = { PlainHeap };
