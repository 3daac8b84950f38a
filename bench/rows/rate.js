'use strict';

/** Rows 2 and 3: requests per second at a model server that takes no time, beside baselines. */
const { againstBaselines, inContest, NIGHTSHIFT, WARM_UP_LINES } = require('../contest');
const { median, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { barPlot } = require('../plots/plot');
const { inScene } = require('../scene');
const { pairedRatios, summarize } = require('../summary');
const { atLeast } = require('../verdicts');

const IN_FLIGHT = 256;
const SETTINGS = {
  concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
  limits: { max_requests: 1_000_000, max_file_bytes: '2GiB' },
};
/** The mock must not be what is measured. */
const MIN_HEADROOM = 3;
/** What is required beside these two. */
const BOUNDS = {
  'Go batch-gateway': { unit: 'x', must: 1.2, aim: 2 },
  'graphile-worker': { unit: 'x', must: 3, aim: 6 },
  'undici loop': { unit: 'x', must: 0.8, aim: 1 },
};

/** Row 2. @returns {Promise<import('../report').Result>} */
function rateBesideAll(bench) {
  return compare(bench, { row: 2, title: 'rate at 0 ms beside what a user would take instead' });
}

/** Row 3. @returns {Promise<import('../report').Result>} */
function rateBesideLoop(bench) {
  const title = 'rate at 0 ms beside a loop that keeps nothing';
  return compare(bench, { row: 3, title, names: ['undici loop'] });
}

async function compare(bench, { row, title, names }) {
  const sizes = bench.quick ? [20_000] : [20_000, 200_000];
  const stack = { bench, settings: SETTINGS, warmUpLines: WARM_UP_LINES };
  const runs = await inScene(stack, (scene) =>
    inContest(scene, { inFlight: IN_FLIGHT, names }, (compete) => measure(scene, compete, sizes)),
  );
  const shape = {
    by: ['lines', 'who'],
    columns: { 'lines/s': 0, 'wall, s': 2, 'CPU, us/line': 0 },
  };
  return {
    row,
    title,
    verdicts: sizes.flatMap((lines) =>
      judge(
        runs.filter((run) => run.lines === lines),
        lines,
      ),
    ),
    runs,
    summary: summarize(runs, shape, bench),
    plot: plotOf(runs, title, bench),
  };
}

async function measure({ bench, mock }, compete, sizes) {
  const runs = [];
  for (const lines of sizes) {
    const file = await inputFile(bench.scratch, { lines });
    await mock.reset();
    const raw = rounded(mock.ceiling({ connections: IN_FLIGHT }));
    const found = await compete({ file, lines, latencyMs: 0, rounds: bench.repeat });
    runs.push(...found.map((run) => ({ ...run, 'raw client, lines/s': raw })));
  }
  return runs;
}

function judge(runs, lines) {
  const what = `${lines} lines`;
  const ratios = againstBaselines(runs, what).map((verdict) => {
    const to = Object.keys(BOUNDS).find((name) => verdict.what.endsWith(name));
    if (to === undefined) return verdict;
    const { ratios: values, from } = pairedRatios(runs, { column: 'lines/s', of: NIGHTSHIFT, to });
    return { ...atLeast(verdict.what, values, BOUNDS[to]), from };
  });
  return [...ratios, headroom(runs, what)];
}

function headroom(runs, what) {
  const rates = runs.map((run) => run['lines/s']);
  const raw = median(runs.map((run) => run['raw client, lines/s']));
  const bounds = { unit: 'x', digits: 1, must: MIN_HEADROOM };
  return { ...atLeast(`mock against the fastest, ${what}`, [raw / Math.max(...rates)], bounds) };
}

function plotOf(runs, title, bench) {
  const group = ({ lines }) => `${lines.toLocaleString('en')} lines, ${IN_FLIGHT} in flight`;
  return barPlot(runs, { title: capital(title), unit: 'lines/s', value: 'lines/s', group }, bench);
}

function capital(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}`;
}

module.exports = { rateBesideAll, rateBesideLoop };
