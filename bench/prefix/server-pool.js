'use strict';

const path = require('node:path');
const { LruCache, serverBlocks, SERVER_BLOCK_TOKENS } = require('../lru-cache');

const SERVERS = 4;
const CACHE_TOKENS = 32_768;
const IN_FLIGHT = 64;
/** A prefill computes a token in this time; a prompt is in the cache when its prefill ends. */
const PREFILL_TOKEN_MS = 0.05;
const PREFILL_MS = 20;
const DECODE_MS = 1_500;

/** The modules of the product that decide about prefixes, from its build. */
function loadCore(root) {
  const load = (name) => require(path.join(root, 'dist', 'core', name));
  return {
    ...load('plan/prefix-chain.js'),
    ...load('plan/chain-list.js'),
    ...load('plan/plan-order.js'),
    ...load('plan/runs.js'),
    ...load('plan/run-starts.js'),
    ...load('plan/leader-first.js'),
    ...load('names/fnv.js'),
    ...load('dispatch/backends/backend-choice.js'),
    ...load('dispatch/backends/prefix-index.js'),
    ...load('dispatch/queue/fair-request-queue.js'),
    ...load('dispatch/queue/queued-request.js'),
  };
}

/** Model servers with prefix caches, in virtual time. The product chooses the server for each request. */
class ServerPool {
  /**
   * @param how `affinity`: whether caches count in the choice; `loadBound`, that of the product by default; `limit`:
   * how many requests each server takes, any number by default; `sharesEarly`: whether a prompt is in the cache as soon
   * as its prefill begins
   */
  constructor(core, how = {}) {
    this.core = core;
    const defaults = { affinity: true, loadBound: core.LOAD_BOUND, limit: Infinity };
    this.how = { ...defaults, sharesEarly: false, ...how };
    this.servers = Array.from({ length: SERVERS }, (_, id) => ({
      ...{ id: String(id), inFlight: 0, cache: new LruCache(CACHE_TOKENS) },
    }));
    this.index = new core.PrefixIndex(CACHE_TOKENS);
    this.readChain = core.createChainReader();
    this.events = [];
    this.nowMs = 0;
    this.inFlight = 0;
    this.total = 0;
    this.hits = 0;
  }

  get hasRoom() {
    return this.inFlight < IN_FLIGHT;
  }

  /** Calls `send` at first and after each event. Returns the share of blocks that were in a cache. */
  run(send) {
    for (;;) {
      send();
      const event = this.events.shift();
      if (event === undefined) return this.hits / this.total;
      this.nowMs = event.atMs;
      event.happen();
    }
  }

  /** Something happens at a time. */
  at(atMs, happen) {
    let place = this.events.length;
    while (place > 0 && this.events[place - 1].atMs > atMs) place--;
    this.events.splice(place, 0, { atMs, happen });
  }

  /** @param number decides how long the answer is */
  send({ prompt, number }, onEnded) {
    const blocks = serverBlocks(prompt);
    const chain = this.readChain({ bytes: prompt, ranges: [0, prompt.length] });
    const known = chain.blocks.slice(0, chain.length);
    const server = this.choose(chain, number);
    const hits = server.cache.hits(blocks);
    this.hits += hits;
    this.total += blocks.length;
    this.inFlight++;
    server.inFlight++;
    const uncached = (blocks.length - hits) * SERVER_BLOCK_TOKENS;
    const prefilledMs = this.nowMs + PREFILL_MS + uncached * PREFILL_TOKEN_MS;
    const cached = () => server.cache.add(blocks);
    if (this.how.sharesEarly) cached();
    this.at(prefilledMs, () => {
      cached();
      this.index.onComputed(server.id, { blocks: known, length: known.length });
    });
    this.at(prefilledMs + DECODE_MS * (0.5 + fraction(number)), () => {
      server.inFlight--;
      this.inFlight--;
      onEnded();
    });
  }

  choose(chain, number) {
    const { servers, index, core } = this;
    const { affinity, loadBound, limit } = this.how;
    const candidates = servers.map((server) => {
      const { id, inFlight } = server;
      const match = affinity ? index.match(id, chain) : 0;
      const state = { isReady: true, hasRoom: inFlight < limit, limit: 1 };
      return { server, id, inFlight, match, ...state };
    });
    const key = affinity && chain.length > 0 ? chain.blocks[0] : number;
    const options = { loadBound, promptBlocks: chain.length, key };
    const chosen = core.chooseBackend(candidates, options);
    index.onSent(chosen.id, chain);
    return chosen.server;
  }
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
  const { entries, marks } = planOrder(Uint32Array.from(input, hashOf), chains);
  const places = entries ?? input;
  return { entries: places, marks: marks ?? runsOfHashes(lines.length, (i) => hashOf(places[i])) };
}

/** As good as random, in [0, 1). */
function fraction(number) {
  return ((Math.imul(number + 1, 0x9e3779b1) >>> 0) % 65_536) / 65_536;
}

module.exports = { ServerPool, bestHits, loadCore, planOf, SERVERS, CACHE_TOKENS, IN_FLIGHT };
