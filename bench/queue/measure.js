'use strict';

/**
 * One measurement of the queue in a process of its own, so that none profits from code that another one
 * warmed up: `node --expose-gc bench/queue/measure.js NAME ROOT JSON`. Prints the result as JSON.
 */
const { PlainHeap } = require('./plain-heap');
const { loadProduct, openPool, requestSource } = require('./pool');
const { quantile } = require('../figures');

const WARM_UP = 300_000;
const HELD = 100_000;

const MEASUREMENTS = { heap, queue, path, promises, latencies, blocks, survey, memory };

/** F1, peer: pop and push of a heap that holds 100 k. */
function heap(_product, { operations }) {
  const held = new PlainHeap();
  for (let i = 0; i < HELD; i++) held.push({ key: (i * 7_919) % HELD });
  return ratePerSec(operations, (i) => {
    const item = held.pop();
    item.key += 200 + ((i * 7_919) % 3_000);
    held.push(item);
  });
}

/** F1: pop and push of the fair queue that holds 100 k requests. */
function queue(product, { operations, flows }) {
  const held = new product.FairRequestQueue();
  const { next } = requestSource(product, flows);
  for (let i = 0; i < HELD; i++) held.push(next());
  return ratePerSec(operations, () => {
    const request = held.pop();
    held.end(request, request.cost);
    held.push(request);
  });
}

/** F2: arrival, dispatch and end of requests, of which 100 k wait. */
function path(product, { operations, flows }) {
  const inFlight = [];
  const owner = { dispatched: (request) => inFlight.push(request), dropped: fail };
  const { controller } = openPool(product, { limit: 64 });
  const { next } = requestSource(product, flows, owner);
  for (let i = 0; i < HELD; i++) controller.tryEnqueue(next());
  let ended = 0;
  return ratePerSec(operations, () => {
    controller.tryEnqueue(next());
    controller.onRequestComplete(inFlight[ended]);
    inFlight[ended++] = null;
  });
}

/** F2 with a promise for each request: 100 k wait, then all are served. */
async function promises(product, { operations, flows }) {
  const { controller } = openPool(product, { limit: 64 });
  const { options } = requestSource(product, flows);
  const round = async () => {
    const waiting = Array.from({ length: HELD }, () =>
      product
        .admitted(controller, options())
        .then(({ request }) => controller.onRequestComplete(request)),
    );
    await Promise.all(waiting);
  };
  await round();
  const startedMs = performance.now();
  const rounds = Math.max(1, Math.round(operations / HELD));
  for (let i = 0; i < rounds; i++) await round();
  return { perSec: (rounds * HELD) / ((performance.now() - startedMs) / 1_000) };
}

/** F3: 99th percentile of single calls, µs, minus what reading the clock costs. */
function latencies(product, { operations, flows }) {
  const inFlight = [];
  const owner = { dispatched: (request) => inFlight.push(request), dropped: () => {} };
  const { controller } = openPool(product, { limit: 64 });
  const { next } = requestSource(product, flows, owner);
  const waiting = Array.from({ length: HELD }, next);
  for (const request of waiting) controller.tryEnqueue(request);
  const idle = openPool(product, { limit: 1_000 }).controller;
  const samples = { clock: [], enqueue: [], dispatch: [], bypass: [], cancel: [] };
  for (let i = 0; i < operations; i++) {
    const [queued, passing, ended] = [next(), next(), inFlight.shift()];
    timed(samples.clock, () => {});
    timed(samples.enqueue, () => controller.tryEnqueue(queued));
    timed(samples.dispatch, () => controller.onRequestComplete(ended));
    timed(samples.bypass, () => idle.tryEnqueue(passing));
    idle.onRequestComplete(inFlight.pop());
    const victim = next();
    controller.tryEnqueue(victim);
    timed(samples.cancel, () => controller.cancel(victim));
  }
  const warm = operations / 10;
  const p99 = (name) => quantile(samples[name].slice(warm), 0.99) * 1_000;
  return Object.fromEntries(Object.keys(samples).map((name) => [name, p99(name) - p99('clock')]));
}

/** F3: longest time without a turn of the event loop, ms, while 100 k requests leave at once. */
function blocks(product, { flows }) {
  const cancels = () => {
    const { controller, waiting } = fullPool(product, flows);
    return elapsedMs(() => waiting.forEach((request) => controller.cancel(request)));
  };
  const expiries = () => {
    let nowMs = 0;
    const slices = [];
    const { controller } = fullPool(product, flows, {
      now: () => nowMs,
      defer: (resume) => slices.push(resume),
    });
    nowMs = 1_000_000;
    let longestMs = elapsedMs(() => controller.tick());
    while (slices.length > 0) longestMs = Math.max(longestMs, elapsedMs(slices.shift()));
    return longestMs;
  };
  for (let i = 0; i < 2; i++) [cancels(), expiries()];
  return { cancels: cancels(), expiries: expiries() };
}

/** F3: time for the 200 longest of 10 k flows, ms; the gateway yields four times meanwhile. */
function survey(product) {
  const { controller } = fullPool(product, 10_000);
  const look = () =>
    elapsedMs(() => {
      const one = controller.survey(200);
      const steps = one.steps();
      while (!steps.next().done);
      return one.result;
    });
  for (let i = 0; i < 20; i++) look();
  return { survey: look() };
}

/** F4: heap bytes of waiting requests, flows and bodies. */
function memory(product) {
  const owner = { dispatched: () => {}, dropped: () => {} };
  const grown = (count, flows, withBody) => {
    const { controller } = openPool(product, { limit: 1 });
    const { next } = requestSource(product, flows, owner);
    const bodies = [];
    for (let i = 0; i < 1_000; i++) controller.tryEnqueue(next());
    const before = usedBytes();
    for (let i = 0; i < count; i++) {
      const request = next();
      if (withBody) bodies.push(Buffer.alloc(4_096));
      controller.tryEnqueue(request);
    }
    const after = usedBytes();
    return { bytes: after - before, kept: [controller, bodies] };
  };
  return {
    perItem: grown(HELD, 100, false).bytes / HELD,
    flows: grown(10_000, 11_000, false).bytes / 1e6,
    bodies: grown(5_000, 100, true).bytes / 1e6,
  };
}

function fullPool(product, flows, options = {}) {
  const owner = { dispatched: () => {}, dropped: () => {} };
  const { controller } = openPool(product, { limit: 1, ...options });
  const { next } = requestSource(product, flows, owner);
  const waiting = Array.from({ length: HELD }, next);
  for (const request of waiting) controller.tryEnqueue(request);
  return { controller, waiting };
}

function ratePerSec(operations, work) {
  for (let i = 0; i < WARM_UP; i++) work(i);
  const cpu = process.cpuUsage();
  const tookMs = elapsedMs(() => {
    for (let i = 0; i < operations; i++) work(i);
  });
  const { user, system } = process.cpuUsage(cpu);
  return { perSec: operations / (tookMs / 1_000), perCpuSec: operations / ((user + system) / 1e6) };
}

function elapsedMs(work) {
  const startedMs = performance.now();
  work();
  return performance.now() - startedMs;
}

function timed(samples, work) {
  samples.push(elapsedMs(work));
}

function usedBytes() {
  for (let i = 0; i < 3; i++) global.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function fail(_request, code) {
  throw new Error(`a request was dropped: ${code}`);
}

async function main() {
  const [name, root, options] = process.argv.slice(2);
  const result = await MEASUREMENTS[name](loadProduct(root), JSON.parse(options));
  process.stdout.write(JSON.stringify(result));
}

main();
