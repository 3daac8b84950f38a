'use strict';

/** One worker as one process and as two, in turns on one mock: rate, processor time and memory of all its processes. */
const { inTurns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { startMock } = require('../mock-server');
const { inStack } = require('../scene');
const { obstacle, onTwoSlowCores } = require('../slow-cores');
const { pairedRatios, summarize } = require('../summary');
const { atLeast, figure } = require('../verdicts');

const LINES = 20_000;
/** Each process compiles for itself. */
const WARM_UP_LINES = 40_000;
const CASES = [
  { latencyMs: 0, inFlight: 256 },
  { latencyMs: 50, inFlight: 256 },
  { latencyMs: 50, inFlight: 500 },
];
const COUNTS = [1, 2];
/**
 * How much of each core the worker may use. A quota stops its threads for tens of milliseconds at a time. `ALONE` therefore
 * keeps more requests in flight than one process handles between two stops.
 */
const SHARE = 0.3;
const MUST = 1.6;
const ALONE = [{ latencyMs: 0, inFlight: 1_000, share: SHARE }];

const nameOf = (count) => `${count} ${count === 1 ? 'process' : 'processes'}`;

/** @returns {Promise<import('../report').Result>} */
function processes(bench) {
  const title = 'one worker as one process and as two, 20,000 lines';
  const judge = (what, ratios) => figure(what, ratios, { unit: 'x' });
  return measure(bench, { row: 'processes', title, cases: CASES, judge });
}

/** @returns {Promise<import('../report').Result>} */
async function processesAlone(bench) {
  const title = 'the same on two slow cores that the worker has for itself';
  const row = 'processes-alone';
  const missing = obstacle();
  if (missing !== null) return notMeasured({ row, title, missing });
  const judge = (what, ratios) => atLeast(what, ratios, { unit: 'x', must: MUST });
  return measure(bench, { row, title, cases: ALONE, judge });
}

function notMeasured({ row, title, missing }) {
  const verdict = { what: 'not measured', value: missing, must: `≥ ${MUST}x`, aim: '', met: null };
  return { row, title, verdicts: [verdict], runs: [] };
}

async function measure(bench, { row, title, cases, judge }) {
  const runs = [];
  for (const each of cases) runs.push(...(await measureCase(bench, each)));
  return {
    row,
    title,
    verdicts: cases.map(({ latencyMs, inFlight }) => {
      const own = runs.filter((run) => run.latency === latencyMs && run['in flight'] === inFlight);
      const pair = { column: 'lines/s', of: nameOf(2), to: nameOf(1) };
      const { ratios, from } = pairedRatios(own, pair);
      const what = `two against one, ${latencyMs} ms, ${inFlight} in flight`;
      return { ...judge(what, ratios), from };
    }),
    runs,
    summary: summarize(
      runs,
      {
        by: ['latency', 'in flight', 'who'],
        columns: { 'lines/s': 0, 'worker, us/line': 0, 'worker, cores': 2, 'peak, MB': 0 },
      },
      bench,
    ),
  };
}

async function measureCase(bench, { latencyMs, inFlight, share }) {
  const file = await inputFile(bench.scratch, { lines: LINES });
  const mock = await startMock();
  try {
    const open = (at, scenes) => {
      const count = COUNTS[at];
      if (count === undefined) {
        const load = { file, latencyMs, inFlight };
        return withQuotas(scenes, share, () => compete(bench, scenes, load));
      }
      const settings = {
        concurrency: { global: inFlight, per_model: inFlight },
        worker: { processes: count },
      };
      const options = { bench, settings, warmUpLines: WARM_UP_LINES, mock, gatewayUrl: mock.url };
      return inStack(options, (scene) => open(at + 1, { ...scenes, [nameOf(count)]: scene }));
    };
    return await open(0, {});
  } finally {
    await mock.stop();
  }
}

async function withQuotas(scenes, share, run) {
  if (share === undefined) return run();
  const lift = Object.values(scenes).map(({ product }) => onTwoSlowCores(product.workerPid, share));
  try {
    return await run();
  } finally {
    lift.forEach((each) => each());
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
        'worker, cores': rounded((usage.cpuSec / createToCompletedMs) * 1000, 2),
        'peak, MB': rounded(usage.peakMb),
        'max in flight': stats.maxInFlight,
        ...disturbance(usage),
      };
    },
  ]);
  return inTurns(bench, Object.fromEntries(contenders));
}

module.exports = { processes, processesAlone };
