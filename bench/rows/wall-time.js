'use strict';

/** Row 1: a whole batch at a model server of 50 ms, as a share of what is possible at best. */
const { calmRuns } = require('../calm');
const { disturbance, median, percent, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { inScene } = require('../scene');

const LATENCY_MS = 50;
const LEVELS = [
  { inFlight: 100, must: { 20_000: 0.94, 200_000: 0.95 }, aim: 0.98 },
  { inFlight: 256, must: { 20_000: 0.88, 200_000: 0.92 }, aim: 0.96 },
  { inFlight: 500, must: { 20_000: 0.72, 200_000: 0.8 }, aim: 0.93 },
];

/** @returns {Promise<import('../report').Result>} */
async function wallTime(bench) {
  const sizes = bench.quick ? [20_000] : [20_000, 200_000];
  const runs = [];
  const verdicts = [];
  for (const level of LEVELS) {
    const found = await measureLevel(bench, level, sizes);
    runs.push(...found);
    for (const lines of sizes) verdicts.push(verdict(found, level, lines));
  }
  return { row: 1, title: 'wall time at 50 ms, share of the ideal', verdicts, runs };
}

function measureLevel(bench, { inFlight }, sizes) {
  const concurrency = { global: inFlight, per_model: inFlight };
  const limits = { max_requests: 1_000_000, max_file_bytes: '2GiB' };
  return inScene({ bench, settings: { concurrency, limits } }, async (scene) => {
    const runs = [];
    for (const lines of sizes) {
      const file = await inputFile(bench.scratch, { lines });
      const times = lines > 20_000 ? 1 : bench.repeat;
      runs.push(...(await calmRuns(bench, () => measure(scene, { file, lines, inFlight }), times)));
    }
    return runs;
  });
}

async function measure(scene, { file, lines, inFlight }) {
  const idealMs = (lines * LATENCY_MS) / inFlight;
  await scene.mock.reset({ latencyMs: LATENCY_MS });
  const rawPerSec = scene.mock.ceiling({ connections: inFlight });
  const run = await scene.run({
    file,
    lines,
    latencyMs: LATENCY_MS,
    timeoutMs: 60_000 + 20 * idealMs,
  });
  const sendingMs = run.stats.lastAnswerMs - run.stats.firstRequestMs;
  return {
    'in flight': inFlight,
    lines,
    'wall, s': rounded(run.createToCompletedMs / 1000, 2),
    share: percent(idealMs / run.createToCompletedMs),
    'sending alone': percent(idealMs / sendingMs),
    'raw client': percent((rawPerSec * LATENCY_MS) / 1000 / inFlight),
    'to first, s': rounded(run.createToFirstMs / 1000, 2),
    'last answer to end, s': rounded(run.lastAnswerToCompletedMs / 1000, 2),
    'max in flight': run.stats.maxInFlight,
    'answer, ms': rounded(run.stats.meanAnswerMs, 1),
    'worker, us/line': rounded((run.usage.cpuSec / lines) * 1e6),
    ...disturbance(run.usage),
  };
}

function verdict(runs, { inFlight, must, aim }, lines) {
  const shares = runs
    .filter((run) => run.lines === lines)
    .map((run) => parseFloat(run.share) / 100);
  const share = median(shares);
  return {
    what: `${inFlight} in flight, ${lines} lines`,
    value: percent(share),
    must: `≥ ${percent(must[lines])}`,
    aim: lines > 20_000 ? `≥ ${percent(aim)}` : '',
    met: share >= must[lines],
  };
}

module.exports = { wallTime };
