'use strict';

/**
 * Hits in the prefix caches of simulated model servers: order of the plan, leaders and choice of a backend
 * against the best that any order can do. Pure simulation, so a busy machine changes nothing.
 */
const prefix = require('../prefix/server-pool');
const { DATASETS } = require('../prompts');

/** Chunks of one worker at a time. */
const LANES = 4;
const MUST = 0.97;
const AIM = 0.99;

/** What a simulation takes from the product. */
const ORDERS = {
  'order of the file': { order: 'file', leaders: false, affinity: false },
  'by system prompt': { order: 'hash', leaders: false, affinity: false },
  'by system prompt, affinity': { order: 'hash', leaders: false, affinity: true },
  'depth first, affinity': { order: 'plan', leaders: false, affinity: true },
};
const PRODUCT = { order: 'plan', leaders: true, affinity: true };
/** The product with other bounds, and with servers that learnt to take no more than so many requests. */
const VARIANTS = {
  ...ORDERS,
  'with leaders': PRODUCT,
  'load bound 2': { ...PRODUCT, loadBound: 2 },
  'load bound 1.25': { ...PRODUCT, loadBound: 1.25 },
  'limit 24': { ...PRODUCT, limit: 24 },
  'limit 18': { ...PRODUCT, limit: 18 },
};

/** @returns {Promise<import('../report').Result>} */
async function prefixCache(bench) {
  const core = prefix.loadCore(bench.root);
  const runs = [];
  let worst = 1;
  for (const [name, make] of Object.entries(DATASETS)) {
    const lines = make(bench.quick ? 4 : 1);
    const best = prefix.bestHits(lines);
    const run = { dataset: name, lines: lines.length, 'best, %': percent(best) };
    for (const [variant, how] of Object.entries(VARIANTS)) {
      const share = new Worker(lines, how, core).run();
      run[`${variant}, %`] = percent(share);
      if (how === PRODUCT) worst = Math.min(worst, share / best);
    }
    runs.push(run);
  }
  const what = 'hits divided by the best, worst dataset';
  const value = worst.toFixed(3);
  const verdict = { what, value, must: `≥ ${MUST}`, aim: `≥ ${AIM}`, met: worst >= MUST };
  const title = `prefix cache, ${prefix.SERVERS} servers of ${prefix.CACHE_TOKENS} tokens, ${prefix.IN_FLIGHT} in flight`;
  return { row: 'F10', title, verdicts: [verdict], runs };
}

/** One worker that sends lines to servers, in virtual time. */
class Worker {
  constructor(lines, { order, leaders, ...choice }, core) {
    this.lines = lines;
    this.core = core;
    const { entries, marks } = prefix.planOf(lines, order, core);
    this.entries = entries;
    this.marks = leaders ? marks : marks.map(() => core.RUN_MARK.single);
    this.pool = new prefix.ServerPool(core, choice);
    this.next = 0;
    this.chunks = [];
  }

  /** The share of blocks that were in a cache. */
  run() {
    return this.pool.run(() => this.sendAll());
  }

  /** Sends in turn from each chunk, until all permits are used or all lines wait. */
  sendAll() {
    const { chunks, pool } = this;
    for (let waiting = 0; pool.hasRoom && waiting <= chunks.length;) {
      while (chunks.length < LANES && this.next < this.entries.length) chunks.push(this.chunk());
      const chunk = chunks.shift();
      if (chunk === undefined) return;
      if (chunk.order.isEmpty) continue;
      chunks.push(chunk);
      waiting = this.send(chunk) ? 0 : waiting + 1;
    }
  }

  /** The next chunk of the plan: half of what is left for each lane. */
  chunk() {
    const left = this.entries.length - this.next;
    const from = this.next;
    const size = Math.min(left, Math.max(64, Math.ceil(left / (2 * LANES))));
    this.next += size;
    const marks = this.marks.slice(from, from + size);
    const order = new this.core.LeaderFirst({ marks, isAnswered: () => false });
    return { from, order };
  }

  /** Sends the next line of a chunk; false if its lines wait for a leader. */
  send({ from, order }) {
    const { pool } = this;
    const { nowMs } = pool;
    const index = order.take(nowMs);
    if (index === null) return false;
    order.onSent(index, nowMs);
    // When followers stop waiting, lines are sent again.
    if (order.startEndsMs > nowMs) pool.at(order.startEndsMs, () => {});
    const { prompt } = this.lines[this.entries[from + index]];
    pool.send({ prompt, number: from + index }, () => order.onEnded(index));
    return true;
  }
}

function percent(share) {
  return (100 * share).toFixed(1);
}

module.exports = { prefixCache };
