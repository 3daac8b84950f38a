'use strict';

/**
 * Rows F1 to F4: rate, latency and memory of the queue of a pool. Each figure is measured in a process of
 * its own; F1 beside a plain binary heap that knows nothing of flows.
 */
const { execFileSync } = require('node:child_process');
const os = require('node:os');
const path = require('node:path');
const { calmRuns } = require('../calm');
const { median, rounded } = require('../figures');
const { watch } = require('../process-stats');

const MEASURE = path.join(__dirname, '..', 'queue', 'measure.js');
const MANY = 1_000;

/** Row F1. @returns {Promise<import('../report').Result>} */
async function queueRate(bench) {
  const runs = await rounds(bench, { operations: bench.quick ? 300_000 : 2_000_000 }, (measure) => {
    const peer = measure('heap');
    const own = measure('queue', { flows: MANY });
    return {
      'heap, M/s': rounded(peer.perSec / 1e6, 2),
      '1 k flows, M/s': rounded(own.perSec / 1e6, 2),
      ratio: rounded(own.perSec / peer.perSec, 2),
      'ratio, CPU time': rounded(own.perCpuSec / peer.perCpuSec, 2),
    };
  });
  const rate = median(runs.map((run) => run['1 k flows, M/s']));
  return {
    ...{ row: 'F1', title: 'push and pop, 1 k flows, 100 k queued', runs },
    verdicts: [
      verdict('push and pop', `${rate} M/s`, '≥ 3 M/s', '≥ 5 M/s', rate >= 3),
      verdict('to a plain heap', `${median(runs.map(({ ratio }) => ratio))}x`, '', '', true),
    ],
  };
}

/** Row F2. @returns {Promise<import('../report').Result>} */
async function pathRate(bench) {
  const operations = bench.quick ? 200_000 : 1_000_000;
  const runs = await rounds(bench, { operations, flows: MANY }, (measure) => ({
    'callbacks, k/s': rounded(measure('path').perSec / 1e3),
    'promises, k/s': rounded(measure('promises').perSec / 1e3),
  }));
  const callbacks = median(runs.map((run) => run['callbacks, k/s']));
  const promises = median(runs.map((run) => run['promises, k/s']));
  return {
    ...{ row: 'F2', title: 'arrival, dispatch and end, 100 k waiting', runs },
    verdicts: [
      verdict('callbacks', `${callbacks} k/s`, '≥ 1000 k/s', '≥ 2000 k/s', callbacks >= 1_000),
      verdict('a promise each', `${promises} k/s`, '≥ 200 k/s', '≥ 350 k/s', promises >= 200),
    ],
  };
}

/** Row F3. @returns {Promise<import('../report').Result>} */
async function callLatency(bench) {
  const must = { enqueue: 4, dispatch: 5, bypass: 3, cancel: 2 };
  const aim = { enqueue: 2, dispatch: 2.5, bypass: 1, cancel: 1 };
  const operations = bench.quick ? 30_000 : 200_000;
  const runs = await rounds(bench, { operations, flows: MANY }, (measure) => {
    const p99 = measure('latencies');
    const { cancels, expiries } = measure('blocks');
    return {
      ...Object.fromEntries(Object.keys(must).map((name) => [name, rounded(p99[name], 2)])),
      'cancels, ms': rounded(cancels, 1),
      'expiries, ms': rounded(expiries, 1),
      'survey, ms': rounded(measure('survey').survey, 1),
    };
  });
  const of = (column) => median(runs.map((run) => run[column]));
  const calls = Object.keys(must).map((name) => {
    const bounds = [`≤ ${must[name]} µs`, `≤ ${aim[name]} µs`];
    return verdict(`p99 of ${name}`, `${of(name)} µs`, ...bounds, of(name) <= must[name]);
  });
  const blocks = ['cancels, ms', 'expiries, ms'].map((name) =>
    verdict(`100 k ${name}`, `${of(name)} ms`, '≤ 10 ms', '≤ 4 ms', of(name) <= 10),
  );
  const survey = of('survey, ms');
  const seen = verdict('a look at 10 k flows', `${survey} ms`, '≤ 5 ms', '≤ 2 ms', survey <= 5);
  const title = 'p99 of a call, µs; longest block when 100 k requests leave at once';
  return { row: 'F3', title, runs, verdicts: [...calls, ...blocks, seen] };
}

/** Row F4. @returns {Promise<import('../report').Result>} */
async function queueMemory(bench) {
  const runs = await rounds(bench, { operations: bench.quick ? 300_000 : 2_000_000 }, (measure) => {
    const { perItem, flows, bodies } = measure('memory');
    const few = measure('queue', { flows: 10 });
    const many = measure('queue', { flows: 5_000 });
    return {
      'B per request': rounded(perItem),
      '10 k flows, MB': rounded(flows, 1),
      '5 k bodies of 4 KB, MB': rounded(bodies, 1),
      '5 k flows to 10': rounded(many.perSec / few.perSec, 2),
    };
  });
  const of = (column) => median(runs.map((run) => run[column]));
  const [bytes, flows] = [of('B per request'), of('10 k flows, MB')];
  const [bodies, ratio] = [of('5 k bodies of 4 KB, MB'), of('5 k flows to 10')];
  return {
    ...{ row: 'F4', title: 'memory of what waits', runs },
    verdicts: [
      verdict('a queued request', `${bytes} B`, '≤ 500 B', '≤ 300 B', bytes <= 500),
      verdict('10 k flows of one request', `${flows} MB`, '≤ 12 MB', '≤ 8 MB', flows <= 12),
      verdict('5 k requests of 4 KB', `${bodies} MB`, '≤ 150 MB', '≤ 100 MB', bodies <= 150),
      verdict('rate, 5 k flows to 10', `${ratio}x`, '≥ 0.7x', '≥ 0.85x', ratio >= 0.7),
    ],
  };
}

/** Runs `work` in each round, with the measurements of the product as its argument. */
function rounds(bench, defaults, work) {
  const measure = (name, options = {}) => {
    const json = JSON.stringify({ ...defaults, ...options });
    const args = ['--expose-gc', MEASURE, name, bench.root, json];
    return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
  };
  return calmRuns(bench, async () => {
    const usage = watch({ roots: [], memoryOf: process.pid });
    const run = work(measure);
    const { othersCores } = usage.end();
    return { ...run, load1: rounded(os.loadavg()[0], 1), 'others, cores': rounded(othersCores, 2) };
  });
}

function verdict(what, value, must, aim, met) {
  return { what, value, must, aim, met };
}

module.exports = { callLatency, pathRate, queueMemory, queueRate };
