'use strict';

/** Row 5: what a worker keeps in memory, and whether it grows with the batch. */
const { disturbance, median, rounded } = require('../figures');
const { inputFile, LARGE_BYTES } = require('../input-files');
const { inScene } = require('../scene');
const { memoryMb } = require('../process-stats');
const { atMost } = require('../verdicts');

const IN_FLIGHT = 500;
const LATENCY_MS = 50;
const SETTINGS = {
  concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
  limits: { max_requests: 2_000_000, max_file_bytes: '2GiB' },
};

/** @returns {Promise<import('../report').Result>} */
async function memory(bench) {
  const large = bench.quick ? 200_000 : 1_000_000;
  const shapes = [
    { what: '50,000 lines of 4 KB', lines: 50_000, lineBytes: LARGE_BYTES, latencyMs: LATENCY_MS },
    { what: '10,000 lines', lines: 10_000, latencyMs: 0 },
    { what: `${large} lines`, lines: large, latencyMs: 0 },
  ];
  const runs = [];
  for (const shape of shapes) {
    for (let i = 0; i < bench.repeat; i++) runs.push(await inFreshWorker(bench, shape));
  }
  return { row: 5, title: 'memory of the worker', verdicts: verdicts(runs, shapes), runs };
}

/** Not warmed up, a new process each time: a peak remembers everything that was before. */
async function inFreshWorker(bench, { what, latencyMs, ...shape }) {
  const file = await inputFile(bench.scratch, shape);
  return inScene({ bench, settings: SETTINGS, warm: false }, async (scene) => {
    const idleMb = memoryMb(scene.product.workerPid).now;
    const { lines } = shape;
    const run = await scene.run({ file, lines, latencyMs, timeoutMs: 120_000 + lines * 2 });
    return {
      what,
      'idle MB': rounded(idleMb),
      'steady MB': rounded(run.usage.steadyMb),
      'peak MB': rounded(run.usage.peakMb),
      'lines/s': rounded(lines / (run.createToCompletedMs / 1000)),
      ...disturbance(run.usage),
    };
  });
}

function verdicts(runs, [whole, small, large]) {
  const peak = ({ what }) =>
    median(runs.filter((run) => run.what === what).map((run) => run['peak MB']));
  const growth = rounded(peak(large) - peak(small));
  const mb = { unit: ' MB', digits: 0 };
  return [
    atMost(whole.what, [peak(whole)], { ...mb, must: 300, aim: 220 }),
    atMost(`growth to ${large.what}`, [growth], { ...mb, must: 60, aim: 30 }),
  ];
}

module.exports = { memory };
