'use strict';

/**
 * Hits in the prefix caches of simulated model servers: order of the plan, leaders and choice of a backend
 * against the best that any order can do. Pure simulation, so a busy machine changes nothing.
 */
const path = require('node:path');
const { DATASETS } = require('../prompts');
const { LruCache, serverBlocks, SERVER_BLOCK_TOKENS } = require('../lru-cache');

const SERVERS = 4;
const CACHE_TOKENS = 32_768;
const IN_FLIGHT = 64;
/** Chunks of one worker at a time. */
const LANES = 4;
/** A prefill computes a token in this time; a prompt is in the cache when its prefill ends. */
const PREFILL_TOKEN_MS = 0.05;
const PREFILL_MS = 20;
const DECODE_MS = 1_500;
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
  const core = loadCore(bench.root);
  const runs = [];
  let worst = 1;
  for (const [name, make] of Object.entries(DATASETS)) {
    const lines = make(bench.quick ? 4 : 1);
    const best = bestHits(lines);
    const run = { dataset: name, lines: lines.length, 'best, %': percent(best) };
    for (const [variant, how] of Object.entries(VARIANTS)) {
      const share = new Simulation(lines, how, core).run();
      run[`${variant}, %`] = percent(share);
      if (how === PRODUCT) worst = Math.min(worst, share / best);
    }
    runs.push(run);
  }
  const what = 'hits divided by the best, worst dataset';
  const value = worst.toFixed(3);
  const verdict = { what, value, must: `≥ ${MUST}`, aim: `≥ ${AIM}`, met: worst >= MUST };
  const title = `prefix cache, ${SERVERS} servers of ${CACHE_TOKENS} tokens, ${IN_FLIGHT} in flight`;
  return { row: 'F10', title, verdicts: [verdict], runs };
}

/** The modules of the product, from its build. */
function loadCore(root) {
  const load = (name) => require(path.join(root, 'dist', 'core', name));
  return {
    ...load('plan/prefix-chain.js'),
    ...load('plan/chain-list.js'),
    ...load('plan/plan-order.js'),
    ...load('plan/runs.js'),
    ...load('plan/leader-first.js'),
    ...load('names/fnv.js'),
    ...load('dispatch/backends/backend-choice.js'),
    ...load('dispatch/backends/prefix-index.js'),
  };
}

/** The share of tokens that a cache without a limit finds, whatever the order. */
function bestHits(lines) {
  const known = new Set();
  let [total, hits] = [0, 0];
  for (const { prompt } of lines) {
    for (const block of serverBlocks(prompt)) {
      total++;
      if (known.has(block)) hits++;
      else known.add(block);
    }
  }
  return hits / total;
}

/** One worker that sends lines to servers, in virtual time. */
class Simulation {
  constructor(lines, { order, leaders, affinity, loadBound, limit }, core) {
    this.lines = lines;
    this.core = core;
    this.affinity = affinity;
    this.loadBound = loadBound ?? core.LOAD_BOUND;
    this.limit = limit ?? Infinity;
    const { entries, marks } = planOf(lines, order, core);
    this.entries = entries;
    this.marks = leaders ? marks : marks.map(() => core.RUN_MARK.single);
    this.servers = Array.from({ length: SERVERS }, (_, id) => ({
      ...{ id: String(id), inFlight: 0, cost: 0, cache: new LruCache(CACHE_TOKENS) },
    }));
    this.index = new core.PrefixIndex(CACHE_TOKENS);
    this.readChain = core.createChainReader();
    this.events = [];
    this.nowMs = 0;
    this.next = 0;
    this.inFlight = 0;
    this.total = 0;
    this.hits = 0;
  }

  /** The share of blocks that were in a cache. */
  run() {
    const chunks = [];
    for (;;) {
      this.sendAll(chunks);
      const event = this.events.shift();
      if (event === undefined) return this.hits / this.total;
      this.nowMs = event.atMs;
      if (event.end()) this.inFlight--;
    }
  }

  /** Sends in turn from each chunk, until all permits are used or all lines wait. */
  sendAll(chunks) {
    for (let waiting = 0; this.inFlight < IN_FLIGHT && waiting <= chunks.length;) {
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
    const index = order.take(this.nowMs);
    if (index === null) return false;
    order.onSent(index, this.nowMs);
    this.inFlight++;
    // When followers stop waiting, lines are sent again.
    if (order.startEndsMs > this.nowMs) this.at(order.startEndsMs, () => false);
    const { prompt } = this.lines[this.entries[from + index]];
    const blocks = serverBlocks(prompt);
    const chain = this.readChain({ bytes: prompt, ranges: [0, prompt.length] });
    const known = chain.blocks.slice(0, chain.length);
    const server = this.choose(chain, from + index);
    const hits = server.cache.hits(blocks);
    this.hits += hits;
    this.total += blocks.length;
    const cost = blocks.length * SERVER_BLOCK_TOKENS;
    server.inFlight++;
    server.cost += cost;
    const uncached = (blocks.length - hits) * SERVER_BLOCK_TOKENS;
    const prefilledMs = this.nowMs + PREFILL_MS + uncached * PREFILL_TOKEN_MS;
    this.at(prefilledMs, () => {
      server.cache.add(blocks);
      this.index.onComputed(server.id, { blocks: known, length: known.length });
    });
    this.at(prefilledMs + DECODE_MS * (0.5 + fraction(from + index)), () => {
      server.inFlight--;
      server.cost -= cost;
      order.onEnded(index);
      return true;
    });
    return true;
  }

  choose(chain, place) {
    const { servers, index, core, affinity } = this;
    const candidates = servers.map((server) => {
      const match = affinity ? index.match(server.id, chain) : 0;
      const { id, inFlight, cost } = server;
      return {
        id,
        inFlight,
        cost,
        server,
        match,
        limit: 1,
        isReady: true,
        hasRoom: inFlight < this.limit,
      };
    });
    const key = affinity && chain.length > 0 ? chain.blocks[0] : place;
    const options = { loadBound: this.loadBound, promptBlocks: chain.length, key };
    const chosen = core.chooseBackend(candidates, options);
    index.onSent(chosen.id, chain);
    return chosen.server;
  }

  at(atMs, end) {
    let place = this.events.length;
    while (place > 0 && this.events[place - 1].atMs > atMs) place--;
    this.events.splice(place, 0, { atMs, end });
  }
}

/** Entry numbers in the order of sending, and the marks of runs. */
function planOf(lines, order, { planOrder, ChainList, createChainReader, runsOfHashes, fnv32a }) {
  const hashes = lines.map(({ system }) => (system === null ? 0 : fnv32a(system)));
  const chains = new ChainList();
  const read = createChainReader();
  const none = { blocks: [], length: 0 };
  for (const { prompt } of lines) {
    chains.push(order === 'plan' ? read({ bytes: prompt, ranges: [0, prompt.length] }) : none);
  }
  const input = lines.map((_, i) => i);
  const hashOf = (i) => (order === 'file' ? 0 : hashes[i]);
  const { entries, marks } = planOrder(lines.length, hashOf, chains);
  const places = entries ?? input;
  return { entries: places, marks: marks ?? runsOfHashes(lines.length, (i) => hashOf(places[i])) };
}

/** As good as random, in [0, 1). */
function fraction(number) {
  return ((Math.imul(number + 1, 0x9e3779b1) >>> 0) % 65_536) / 65_536;
}

function percent(share) {
  return (100 * share).toFixed(1);
}

module.exports = { prefixCache };
