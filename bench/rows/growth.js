'use strict';

/** Row growth: what a line costs in batches of a thousand to a million lines, at a model server that takes no time. */
const { calmRuns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { connect, processorSec, rowsStored, stores } = require('../footprint');
const { inputFile } = require('../input-files');
const { pointPlot } = require('../plots/plot');
const { inScene } = require('../scene');
const { groupsOf, rangeOf, summarize } = require('../summary');
const { eventsOf } = require('../temporal-events');
const { figure } = require('../verdicts');

const SIZES = [1_000, 10_000, 100_000, 1_000_000];
const IN_FLIGHT = 256;
const SETTINGS = {
  concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
  limits: { max_requests: 2_000_000, max_file_bytes: '2GiB' },
};
const COLUMNS = {
  'wall, us/line': 1,
  'worker CPU, us/line': 1,
  'all CPU, us/line': 1,
  'worker, peak MB': 0,
  'objects, B/line': 0,
  'PostgreSQL, KB': 0,
  'history events': 0,
  'rows, new': 0,
};

/** @returns {Promise<import('../report').Result>} */
async function growth(bench) {
  const sizes = bench.quick ? SIZES.slice(0, -1) : SIZES;
  const runs = [];
  for (const lines of sizes) {
    const file = await inputFile(bench.scratch, { lines });
    runs.push(...(await calmRuns(bench, () => inFreshStack(bench, { file, lines }))));
  }
  const title = `cost of a line at 0 ms, ${IN_FLIGHT} in flight`;
  return {
    row: 'growth',
    title,
    verdicts: judge(runs, sizes),
    runs,
    summary: summarize(runs, { by: ['lines'], columns: COLUMNS }, bench),
    plot: pointPlot(runs, plotShape(title), bench),
  };
}

/** A new stack for each run: the peak of a worker remembers every batch before. */
function inFreshStack(bench, { file, lines }) {
  return inScene({ bench, settings: SETTINGS }, async (scene) => {
    const { product } = scene;
    const clients = await connect(product);
    try {
      const look = async () => ({
        ...processorSec(product),
        rows: await rowsStored(clients),
        stores: await stores(product, clients),
      });
      const before = await look();
      const run = await scene.run({ file, lines, timeoutMs: 120_000 + lines * 2 });
      const after = await look();
      const history = await eventsOf(clients.temporal, [run.id]);
      return figures({ run, before, after, lines, history });
    } finally {
      await clients.close();
    }
  });
}

function figures({ run, before, after, lines, history }) {
  const bytes = ({ stores: { objects } }) => Object.values(objects).reduce((a, b) => a + b, 0);
  const cpu = (name) => ((after[name] - before[name]) / lines) * 1e6;
  const cpuOfAll = ['workerSec', 'apiSec', 'postgresSec', 'temporalSec'].map(cpu);
  const mean = (what) => history.find((one) => one.what === what).mean;
  return {
    lines,
    'wall, s': rounded(run.createToCompletedMs / 1000, 2),
    'wall, us/line': rounded((run.createToCompletedMs * 1000) / lines, 1),
    'worker CPU, us/line': rounded(cpu('workerSec'), 1),
    'all CPU, us/line': rounded(
      cpuOfAll.reduce((a, b) => a + b, 0),
      1,
    ),
    'worker, peak MB': rounded(run.usage.peakMb),
    'objects, B/line': rounded((bytes(after) - bytes(before)) / lines),
    'PostgreSQL, KB': rounded((after.stores.postgres - before.stores.postgres) / 1e3),
    'history events': mean('history events'),
    'history KB': rounded(mean('history bytes') / 1e3, 1),
    'rows, new': after.rows - before.rows,
    ...disturbance(run.usage),
  };
}

/** The largest batches beside those of 10,000 lines, in which the fixed costs of a batch are small. */
function judge(runs, sizes) {
  const groups = groupsOf(runs, ['lines']);
  const [base, large] = [groups[1], groups.at(-1)];
  const what = (column) => `${column}: ${sizes.at(-1)} lines to ${sizes[1]}`;
  const ratio = (column) => rangeOf(large, column).median / rangeOf(base, column).median;
  return Object.keys(COLUMNS)
    .slice(0, 5)
    .map((column) => ({
      ...figure(what(column), [ratio(column)], { unit: 'x' }),
      from: [...base, ...large],
    }));
}

function plotShape(title) {
  return {
    title: `${title[0].toUpperCase()}${title.slice(1)}`,
    unit: 'µs per line',
    x: 'lines',
    xLabel: 'lines of the batch',
    values: {
      'wall time': 'wall, us/line',
      'CPU of all parts': 'all CPU, us/line',
      'CPU of the worker': 'worker CPU, us/line',
    },
  };
}

module.exports = { growth };
