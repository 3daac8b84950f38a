'use strict';

/**
 * Repetition on a shared machine: waits for a calm moment before each run and repeats runs that other processes
 * disturbed. All waits are bounded. Where the machine does not become calm, disturbed runs are what is left: the report
 * prints no figure of them.
 */
const { pause } = require('./api-client');
const { machineCpuSec } = require('./process-stats');

const LOOK_MS = 1_000;

/** Whether other programs used more of the processor in a run than it may count with. */
function isDisturbed(run, { calmCores }) {
  return run['others, cores'] > calmCores;
}

/**
 * @template {Record<string, unknown>} Run with a column `others, cores`
 * @param {{ repeat: number, calmCores: number, patienceMs: number, retries: number }} bench
 * @param {() => Promise<Run>} work one run
 * @param {number} [times] how many runs
 * @returns {Promise<Run[]>} exactly `times`: the calm ones, and the least disturbed if they are too few
 */
async function calmRuns(bench, work, times = bench.repeat) {
  const runs = [];
  for (let tries = 0; tries < times + bench.retries; tries++) {
    if (runs.filter((run) => !isDisturbed(run, bench)).length >= times) break;
    await calmMoment(bench);
    runs.push(await work());
  }
  return runs.sort((a, b) => a['others, cores'] - b['others, cores']).slice(0, times);
}

/**
 * Measures several contenders round by round, so that a slow minute of the machine strikes all of them. Each round begins
 * with another one.
 *
 * @param {object} bench as for {@link calmRuns}; `retries` are those of each contender
 * @param {Record<string, () => Promise<object>>} contenders one run each, by name
 * @param {number} [rounds]
 * @returns {Promise<object[]>} the runs, with `who` and `round`
 */
async function inTurns(bench, contenders, rounds = bench.repeat) {
  const names = Object.keys(contenders);
  const left = new Map(names.map((name) => [name, bench.retries]));
  const runs = [];
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const who = names[(turn + round) % names.length];
      bench.note(`round ${round + 1}: ${who}`);
      const retries = left.get(who);
      let tries = 0;
      const work = () => (tries++, contenders[who]());
      const [run] = await calmRuns({ ...bench, retries }, work, 1);
      left.set(who, retries - (tries - 1));
      runs.push({ who, round: round + 1, ...run });
    }
  }
  return runs;
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

module.exports = { calmRuns, inTurns, isDisturbed };
