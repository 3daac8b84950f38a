'use strict';

/**
 * Repetition on a shared machine: waits for a calm moment before each run and repeats runs that other
 * processes disturbed. All waits are bounded. If the machine does not become calm, the least disturbed
 * runs count, and the table shows how much they were disturbed.
 */
const { pause } = require('./api-client');
const { machineCpuSec } = require('./process-stats');

const LOOK_MS = 1_000;

/**
 * @template {Record<string, unknown>} Run with a column `others, cores`
 * @param {{ repeat: number, calmCores: number, patienceMs: number, retries: number }} bench
 * @param {() => Promise<Run>} work one run
 * @param {number} [times] how many runs
 * @returns {Promise<Run[]>} exactly `times`
 */
async function calmRuns(bench, work, times = bench.repeat) {
  const runs = [];
  const isCalm = (run) => run['others, cores'] <= bench.calmCores;
  for (let tries = 0; tries < times + bench.retries; tries++) {
    if (runs.filter(isCalm).length >= times) break;
    await calmMoment(bench);
    runs.push(await work());
  }
  return runs.sort((a, b) => a['others, cores'] - b['others, cores']).slice(0, times);
}

/** Waits until the machine is idle but for a little, at most `patienceMs`. */
async function calmMoment({ calmCores, patienceMs }) {
  const untilMs = performance.now() + patienceMs;
  while (performance.now() < untilMs) {
    const before = { sec: machineCpuSec(), ms: performance.now() };
    await pause(LOOK_MS);
    const cores = (machineCpuSec() - before.sec) / ((performance.now() - before.ms) / 1000);
    if (cores <= calmCores) return;
  }
}

module.exports = { calmRuns };
