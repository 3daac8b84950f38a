'use strict';

/** Nightshift and what a user would take instead, in turns on the same mock with the same lines. */
const { inTurns } = require('./calm');
const { disturbance, rounded } = require('./figures');
const { openBaselines, WARM_UP_LINES } = require('./peers/baselines');
const { cpuSec, watch } = require('./process-stats');
const { pairedRatios } = require('./summary');
const { figure } = require('./verdicts');

const NIGHTSHIFT = 'Nightshift';

/**
 * Opens the baselines beside the stack of a scene for as long as `work` takes.
 *
 * @template T
 * @param {object} scene
 * @param {{ inFlight: number, names?: string[] }} options `names` of the baselines, all if absent
 * @param {(compete: (work: { file: string, lines: number, latencyMs: number, rounds: number }) => Promise<object[]>) => Promise<T>} work
 *   `compete` gives the runs of all contenders
 * @returns {Promise<T>}
 */
async function inContest(scene, { inFlight, names }, work) {
  const baselines = await openBaselines(scene, { inFlight, names });
  try {
    return await work(async ({ file, lines, latencyMs, rounds }) => {
      const timeoutMs = 120_000 + 2 * lines + (20 * lines * latencyMs) / inFlight;
      const task = { file, lines, latencyMs, timeoutMs };
      const others = Object.entries(baselines.runs).map(([name, run]) => [
        name,
        () => measured(scene, task, run),
      ]);
      const contenders = {
        [NIGHTSHIFT]: () => nightshift(scene, task),
        ...Object.fromEntries(others),
      };
      const runs = await inTurns(scene.bench, contenders, rounds);
      return runs.map(({ who, round, ...run }) => ({
        who,
        round,
        'in flight': inFlight,
        lines,
        ...run,
      }));
    });
  } finally {
    await baselines.close();
  }
}

/** The product, and where its time goes beside the rest. */
async function nightshift(scene, task) {
  const found = await measured(scene, task, async () => {
    const { createToCompletedMs, ...run } = await scene.run(task);
    const sendingMs = run.stats.lastAnswerMs - run.stats.firstRequestMs;
    const parts = {
      'to first, s': rounded(run.createToFirstMs / 1000, 2),
      'sending alone, s': rounded(sendingMs / 1000, 2),
      'last answer to end, s': rounded(run.lastAnswerToCompletedMs / 1000, 2),
      'worker, us/line': rounded((run.usage.cpuSec / task.lines) * 1e6),
    };
    return { seconds: createToCompletedMs / 1000, parts };
  });
  return found;
}

/**
 * @param {(task: object) => Promise<number | { seconds: number, parts: object }>} run
 * @returns {Promise<object>} a run of the table. The processor time is that of all programs but the mock and this one; of a
 *   script, its start and warm-up are part of it.
 */
async function measured({ mock, product }, task, run) {
  const { lines, latencyMs } = task;
  await mock.reset({ latencyMs });
  const before = { mock: cpuSec(mock.pid), own: ownSec() };
  const observation = watch({ roots: [...product.pids, mock.pid], memoryOf: product.workerPid });
  const found = await run(task);
  const usage = observation.end();
  const { requests, maxInFlight } = await mock.stats();
  const { seconds, parts = NO_PARTS } = typeof found === 'number' ? { seconds: found } : found;
  const apart = cpuSec(mock.pid) - before.mock + ownSec() - before.own;
  return {
    'wall, s': rounded(seconds, 2),
    'lines/s': rounded(lines / seconds),
    'CPU, us/line': rounded(((usage.oursSec - apart) / requests) * 1e6),
    'max in flight': maxInFlight,
    ...parts,
    ...disturbance(usage),
  };
}

/** All runs of a table have the same columns. */
const NO_PARTS = {
  'to first, s': '',
  'sending alone, s': '',
  'last answer to end, s': '',
  'worker, us/line': '',
};

function ownSec() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** How many times as fast as each of the others Nightshift was, round by round. */
function againstBaselines(runs, what) {
  const others = [...new Set(runs.map(({ who }) => who))].filter((who) => who !== NIGHTSHIFT);
  return others.map((to) => {
    const { ratios, from } = pairedRatios(runs, { column: 'lines/s', of: NIGHTSHIFT, to });
    return { ...figure(`${what}, to ${to}`, ratios, { unit: 'x' }), from };
  });
}

module.exports = { againstBaselines, inContest, NIGHTSHIFT, WARM_UP_LINES };
