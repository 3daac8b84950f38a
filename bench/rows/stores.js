'use strict';

/** Row 14: what S3 costs beside a folder: rate, first request and finalization of 50,000 lines. */
const { calmRuns } = require('../calm');
const { disturbance, median, rounded } = require('../figures');
const { inputFile, LARGE_BYTES } = require('../input-files');
const { inScene } = require('../scene');

const IN_FLIGHT = 256;
const LATENCY_MS = 50;
const LINES = 50_000;
const SETTINGS = { concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT } };
const STORES = ['filesystem', 's3'];
const SHAPES = [
  { what: '50,000 lines of 279 B' },
  { what: '50,000 lines of 4 KB', lineBytes: LARGE_BYTES },
];
/** `must` bounds the ratio of the medians, S3 to filesystem. */
const FIGURES = [
  { column: 'lines/s', name: 'rate', must: (ratio) => ratio >= 0.9, text: '≥ 0.9x' },
  { column: 'to first, s', name: 'first request', must: (ratio) => ratio <= 1.5, text: '≤ 1.5x' },
  { column: 'last answer to end, s', name: 'end', must: (ratio) => ratio <= 1.5, text: '≤ 1.5x' },
];

/** @returns {Promise<import('../report').Result>} */
async function stores(bench) {
  const files = [];
  for (const { what, lineBytes } of SHAPES) {
    const shape = { lines: LINES, ...(lineBytes === undefined ? {} : { lineBytes }) };
    files.push({ what, file: await inputFile(bench.scratch, shape) });
  }
  const runs = [];
  // Round by round, so that a slow minute of the machine strikes both.
  for (let round = 0; round < bench.repeat; round++) {
    for (const store of STORES) runs.push(...(await measureStore(bench, store, files)));
  }
  return { row: 14, title: 'S3 beside a folder, 50 ms', verdicts: verdicts(runs), runs };
}

function measureStore(bench, store, files) {
  return inScene({ bench: { ...bench, store }, settings: SETTINGS }, async (scene) => {
    const runs = [];
    for (const { what, file } of files) {
      const [found] = await calmRuns({ ...bench, retries: 1 }, () => measure(scene, file), 1);
      runs.push({ store, what, ...found });
    }
    return runs;
  });
}

async function measure(scene, file) {
  const run = await scene.run({ file, lines: LINES, latencyMs: LATENCY_MS, timeoutMs: 180_000 });
  return {
    'lines/s': rounded(LINES / (run.createToCompletedMs / 1000)),
    'to first, s': rounded(run.createToFirstMs / 1000, 2),
    'last answer to end, s': rounded(run.lastAnswerToCompletedMs / 1000, 2),
    'wall, s': rounded(run.createToCompletedMs / 1000, 2),
    'worker, us/line': rounded((run.usage.cpuSec / LINES) * 1e6),
    'worker, peak MB': rounded(run.usage.peakMb),
    ...disturbance(run.usage),
  };
}

function verdicts(runs) {
  const of = (store, what, column) =>
    median(
      runs.filter((run) => run.store === store && run.what === what).map((run) => run[column]),
    );
  return SHAPES.flatMap(({ what }) =>
    FIGURES.map(({ column, name, must, text }) => {
      const ratio = of('s3', what, column) / of('filesystem', what, column);
      const value = `${rounded(ratio, 2)}x`;
      return { what: `${name}, ${what}`, value, must: text, aim: '', met: must(ratio) };
    }),
  );
}

module.exports = { stores };
