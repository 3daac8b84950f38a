'use strict';

/** One worker as one process and as two, in turns on one mock: rate, processor time and memory of all its processes. */
const { inTurns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { startMock } = require('../mock-server');
const { inStack } = require('../scene');
const { pairedRatios, summarize } = require('../summary');
const { figure } = require('../verdicts');

const LINES = 20_000;
const CASES = [
  { latencyMs: 0, inFlight: 256 },
  { latencyMs: 50, inFlight: 256 },
  { latencyMs: 50, inFlight: 500 },
];
const COUNTS = [1, 2];

const nameOf = (count) => `${count} ${count === 1 ? 'process' : 'processes'}`;

/** @returns {Promise<import('../report').Result>} */
async function processes(bench) {
  const runs = [];
  for (const each of CASES) runs.push(...(await measureCase(bench, each)));
  return {
    row: 'processes',
    title: 'one worker as one process and as two, 20,000 lines',
    verdicts: CASES.map(({ latencyMs, inFlight }) => {
      const own = runs.filter((run) => run.latency === latencyMs && run['in flight'] === inFlight);
      const pair = { column: 'lines/s', of: nameOf(2), to: nameOf(1) };
      const { ratios, from } = pairedRatios(own, pair);
      const what = `two against one, ${latencyMs} ms, ${inFlight} in flight`;
      return { ...figure(what, ratios, { unit: 'x' }), from };
    }),
    runs,
    summary: summarize(
      runs,
      {
        by: ['latency', 'in flight', 'who'],
        columns: { 'lines/s': 0, 'worker, us/line': 0, 'peak, MB': 0 },
      },
      bench,
    ),
  };
}

async function measureCase(bench, { latencyMs, inFlight }) {
  const file = await inputFile(bench.scratch, { lines: LINES });
  const mock = await startMock();
  try {
    const open = (at, scenes) => {
      const count = COUNTS[at];
      if (count === undefined) return compete(bench, scenes, { file, latencyMs, inFlight });
      const settings = {
        concurrency: { global: inFlight, per_model: inFlight },
        worker: { processes: count },
      };
      return inStack({ bench, settings, mock, gatewayUrl: mock.url }, (scene) =>
        open(at + 1, { ...scenes, [nameOf(count)]: scene }),
      );
    };
    return await open(0, {});
  } finally {
    await mock.stop();
  }
}

async function compete(bench, scenes, { file, latencyMs, inFlight }) {
  const contenders = Object.entries(scenes).map(([name, scene]) => [
    name,
    async () => {
      const { createToCompletedMs, usage, stats } = await scene.run({
        file,
        lines: LINES,
        latencyMs,
      });
      return {
        latency: latencyMs,
        'in flight': inFlight,
        'wall, s': rounded(createToCompletedMs / 1000, 2),
        'lines/s': rounded((LINES / createToCompletedMs) * 1000),
        'worker, us/line': rounded((usage.cpuSec / LINES) * 1e6),
        'peak, MB': rounded(usage.peakMb),
        'max in flight': stats.maxInFlight,
        ...disturbance(usage),
      };
    },
  ]);
  return inTurns(bench, Object.fromEntries(contenders));
}

module.exports = { processes };
