'use strict';

/** Row 12: a fast model must not wait for a slow one in the same batch. */
const { calmRuns } = require('../calm');
const { disturbance, median, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { inScene } = require('../scene');
const { atMost } = require('../verdicts');

const PER_MODEL = 50;
const MODELS = { fast: 50, slow: 1_000 };
/** As long as the fast ones take, so that both are at work all the time. */
const SLOW_EVERY = MODELS.slow / MODELS.fast + 1;

/** @returns {Promise<import('../report').Result>} */
async function twoModels(bench) {
  const fastLines = bench.quick ? 5_000 : 10_000;
  const bothLines = Math.floor((fastLines * SLOW_EVERY) / (SLOW_EVERY - 1));
  const modelOf = (index) => (index % SLOW_EVERY === 0 ? 'slow' : 'fast');
  const shapes = {
    alone: { lines: fastLines, modelOf: () => 'fast', name: 'fast' },
    both: { lines: bothLines, modelOf, name: 'fast-and-slow' },
  };
  const settings = { concurrency: { global: 4 * PER_MODEL, per_model: PER_MODEL } };
  return inScene({ bench, settings }, async (scene) => {
    const runs = [];
    for (const [what, shape] of Object.entries(shapes)) {
      const file = await inputFile(bench.scratch, shape);
      const found = await calmRuns(bench, () => fastTime(scene, { file, lines: shape.lines }));
      runs.push(...found.map((run) => ({ what, ...run })));
    }
    return {
      row: 12,
      title: 'a model that is 20 times slower beside',
      verdicts: verdicts(runs),
      runs,
    };
  });
}

async function fastTime(scene, { file, lines }) {
  const run = await scene.run({ file, lines, models: MODELS, timeoutMs: 300_000 });
  const { fast, slow } = run.stats.models;
  const since = (ms) => rounded((ms - run.createdAtMs) / 1000, 2);
  return {
    'fast lines': fast.requests,
    'fast, last answer, s': since(fast.lastAnswerMs),
    'slow lines': slow?.requests ?? 0,
    'slow, last answer, s': slow === undefined ? '' : since(slow.lastAnswerMs),
    'completed, s': rounded(run.createToCompletedMs / 1000, 2),
    ...disturbance(run.usage),
  };
}

/** Per line, since the two files do not hold exactly as many fast ones. */
function verdicts(runs) {
  const perLine = (what) =>
    median(
      runs
        .filter((run) => run.what === what)
        .map((run) => run['fast, last answer, s'] / run['fast lines']),
    );
  const ratio = rounded(perLine('both') / perLine('alone'), 3);
  const bounds = { unit: 'x', digits: 3, must: 1.2, aim: 1.05 };
  return [atMost('fast beside slow', [ratio], bounds)];
}

module.exports = { twoModels };
