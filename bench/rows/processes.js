'use strict';

/** One worker as one process and as two, in turns on one mock: rate, processor time and memory of all its processes. */
const { inTurns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { startMock } = require('../mock-server');
const { inStack } = require('../scene');
const { obstacle, onSlowCores } = require('../slow-cores');
const { pairedRatios, summarize } = require('../summary');
const { atLeast, figure } = require('../verdicts');

/** Each process compiles for itself. */
const WARM_UP_LINES = 40_000;
const CASES = [
  { lines: 20_000, latencyMs: 0, inFlight: 256 },
  { lines: 20_000, latencyMs: 50, inFlight: 256 },
  { lines: 20_000, latencyMs: 50, inFlight: 500 },
];
const COUNTS = [1, 2];
/**
 * How much of each core the worker may use. A quota stops its threads for tens of milliseconds at a time. `ALONE` therefore
 * keeps more requests in flight than one process handles between two stops.
 */
const SHARE = 0.3;
const MUST = 1.6;
/** With two cores, the threads of V8 that collect and compile take part of what a second process could use. */
const ALONE = [
  { lines: 100_000, latencyMs: 0, inFlight: 500, cores: 2, must: MUST },
  { lines: 100_000, latencyMs: 0, inFlight: 500, cores: 4 },
];
/** The service has no batches of 100,000 lines by default. */
const LIMITS = { max_requests: 100_000 };

const nameOf = (count) => `${count} ${count === 1 ? 'process' : 'processes'}`;

/** @returns {Promise<import('../report').Result>} */
function processes(bench) {
  const title = 'one worker as one process and as two, 20,000 lines';
  return measure(bench, { row: 'processes', title, cases: CASES });
}

/** @returns {Promise<import('../report').Result>} */
async function processesAlone(bench) {
  const title = 'the same, 100,000 lines, on slow cores that the worker has for itself';
  const row = 'processes-alone';
  const missing = obstacle();
  if (missing !== null) return notMeasured({ row, title, missing });
  return measure(bench, { row, title, cases: ALONE });
}

function notMeasured({ row, title, missing }) {
  const verdict = { what: 'not measured', value: missing, must: `≥ ${MUST}x`, aim: '', met: null };
  return { row, title, verdicts: [verdict], runs: [] };
}

async function measure(bench, { row, title, cases }) {
  const runs = [];
  const verdicts = [];
  for (const each of cases) {
    const own = await measureCase(bench, each);
    runs.push(...own);
    verdicts.push(verdictOf(each, own));
  }
  const summary = summarize(
    runs,
    {
      by: ['cores', 'latency', 'in flight', 'who'],
      columns: { 'lines/s': 0, 'worker, us/line': 0, 'worker, cores': 2, 'peak, MB': 0 },
    },
    bench,
  );
  return { row, title, verdicts, runs, summary };
}

function verdictOf({ latencyMs, inFlight, cores, must }, runs) {
  const pair = { column: 'lines/s', of: nameOf(2), to: nameOf(1) };
  const { ratios, from } = pairedRatios(runs, pair);
  const where = cores === undefined ? '' : `, ${cores} slow cores`;
  const what = `two against one${where}, ${latencyMs} ms, ${inFlight} in flight`;
  const judge = must === undefined ? figure : atLeast;
  return { ...judge(what, ratios, { unit: 'x', must }), from };
}

async function measureCase(bench, each) {
  const { lines, inFlight } = each;
  const file = await inputFile(bench.scratch, { lines });
  const mock = await startMock();
  try {
    const open = (at, scenes) => {
      const count = COUNTS[at];
      if (count === undefined) {
        return withQuotas(scenes, each, () => compete(bench, scenes, { ...each, file }));
      }
      const settings = {
        limits: LIMITS,
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

async function withQuotas(scenes, { cores }, run) {
  if (cores === undefined) return run();
  const pids = Object.values(scenes).map(({ product }) => product.workerPid);
  const lift = pids.map((pid) => onSlowCores(pid, { cores, share: SHARE }));
  try {
    return await run();
  } finally {
    lift.forEach((each) => each());
  }
}

async function compete(bench, scenes, { file, lines, latencyMs, inFlight, cores = 'all' }) {
  const contenders = Object.entries(scenes).map(([name, scene]) => [
    name,
    async () => {
      const { createToCompletedMs, usage, stats } = await scene.run({ file, lines, latencyMs });
      return {
        cores,
        latency: latencyMs,
        'in flight': inFlight,
        'wall, s': rounded(createToCompletedMs / 1000, 2),
        'lines/s': rounded((lines / createToCompletedMs) * 1000),
        'worker, us/line': rounded((usage.cpuSec / lines) * 1e6),
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
