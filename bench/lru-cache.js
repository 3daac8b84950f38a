'use strict';

/** The prefix cache of a model server: blocks of 16 tokens, the least recently used one goes first. */
const SERVER_BLOCK_TOKENS = 16;
const BYTES_PER_TOKEN = 4;
const BLOCK_BYTES = SERVER_BLOCK_TOKENS * BYTES_PER_TOKEN;

/** The blocks of a prompt, each known by all bytes up to its end. A rest of less than a block is left out. */
function serverBlocks(prompt) {
  const blocks = [];
  let [high, low] = [0, 0x811c9dc5];
  for (let at = 0; at + BLOCK_BYTES <= prompt.length; at += BLOCK_BYTES) {
    for (let i = at; i < at + BLOCK_BYTES; i++) {
      low = Math.imul(low ^ prompt[i], 0x01000193);
      high = Math.imul(high ^ low, 0x85ebca6b) ^ (high >>> 15);
    }
    // 53 bits are enough to tell all blocks of a dataset apart.
    blocks.push((high & 0x1fffff) * 2 ** 32 + (low >>> 0));
  }
  return blocks;
}

class LruCache {
  constructor(tokens) {
    this.capacity = Math.floor(tokens / SERVER_BLOCK_TOKENS);
    this.known = new Set();
  }

  /** How many leading blocks are in the cache. They count as used. */
  hits(blocks) {
    const missing = blocks.findIndex((block) => !this.known.has(block));
    const hits = missing === -1 ? blocks.length : missing;
    for (let i = hits - 1; i >= 0; i--) this.use(blocks[i]);
    return hits;
  }

  /** A prefill has ended. */
  add(blocks) {
    for (let i = blocks.length - 1; i >= 0; i--) this.use(blocks[i]);
    for (const oldest of this.known) {
      if (this.known.size <= this.capacity) return;
      this.known.delete(oldest);
    }
  }

  use(block) {
    this.known.delete(block);
    this.known.add(block);
  }
}

module.exports = { LruCache, serverBlocks, SERVER_BLOCK_TOKENS };
