'use strict';

/** Row 1: a whole batch at a model server of 50 ms, as a share of what is possible at best, and beside baselines. */
const { againstBaselines, inContest, NIGHTSHIFT, WARM_UP_LINES } = require('../contest');
const { rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { barPlot } = require('../plots/plot');
const { inScene } = require('../scene');
const { summarize } = require('../summary');
const { atLeast } = require('../verdicts');

const LATENCY_MS = 50;
const LEVELS = [
  { inFlight: 100, must: { 20_000: 95.5, 200_000: 96.5 }, aim: { 20_000: 97, 200_000: 98 } },
  { inFlight: 256, must: { 20_000: 91, 200_000: 93 }, aim: { 20_000: 95, 200_000: 96 } },
  { inFlight: 500, must: { 20_000: 75, 200_000: 80 }, aim: { 20_000: 88, 200_000: 92 } },
];
const SMALL = 20_000;
const LARGE = 200_000;

/** @returns {Promise<import('../report').Result>} */
async function wallTime(bench) {
  const sizes = bench.quick ? [SMALL] : [SMALL, LARGE];
  const runs = [];
  for (const level of LEVELS) runs.push(...(await measureLevel(bench, level, sizes)));
  const shape = {
    by: ['lines', 'in flight', 'who'],
    columns: { 'wall, s': 2, 'share, %': 1, 'CPU, us/line': 0 },
  };
  return {
    row: 1,
    title: `wall time at ${LATENCY_MS} ms, share of the ideal`,
    verdicts: LEVELS.flatMap((level) => sizes.flatMap((lines) => judge(runs, level, lines))),
    runs,
    summary: summarize(runs, shape, bench),
    plot: plotOf(runs, bench),
  };
}

function measureLevel(bench, { inFlight }, sizes) {
  const concurrency = { global: inFlight, per_model: inFlight };
  const limits = { max_requests: 1_000_000, max_file_bytes: '2GiB' };
  const settings = { concurrency, limits };
  return inScene({ bench, settings, warmUpLines: WARM_UP_LINES }, (scene) =>
    inContest(scene, { inFlight }, async (compete) => {
      const runs = [];
      for (const lines of sizes) {
        const file = await inputFile(bench.scratch, { lines });
        const raw = await rawShare(scene, inFlight);
        const rounds = lines > SMALL ? 1 : bench.repeat;
        const found = await compete({ file, lines, latencyMs: LATENCY_MS, rounds });
        runs.push(...found.map((run) => ({ ...withShare(run), 'raw client, %': raw })));
      }
      return runs;
    }),
  );
}

/** What a client that does nothing else makes of it. */
async function rawShare({ mock }, inFlight) {
  await mock.reset({ latencyMs: LATENCY_MS });
  const perSec = mock.ceiling({ connections: inFlight });
  return rounded((perSec * LATENCY_MS) / 10 / inFlight, 1);
}

function withShare({ who, round, ...run }) {
  const idealSec = (run.lines * LATENCY_MS) / 1000 / run['in flight'];
  return { who, round, 'share, %': rounded((idealSec / run['wall, s']) * 100, 1), ...run };
}

function judge(runs, { inFlight, must, aim }, lines) {
  const ofLevel = runs.filter((run) => run['in flight'] === inFlight && run.lines === lines);
  const from = ofLevel.filter(({ who }) => who === NIGHTSHIFT);
  const shares = from.map((run) => run['share, %']);
  const bounds = { unit: ' %', digits: 1, must: must[lines], aim: aim[lines] };
  const what = `${inFlight} in flight, ${lines} lines`;
  return [{ ...atLeast(what, shares, bounds), from }, ...againstBaselines(ofLevel, what)];
}

function plotOf(runs, bench) {
  return barPlot(
    runs.filter(({ lines }) => lines === SMALL),
    {
      title: `Share of the ideal: ${SMALL.toLocaleString('en')} lines, answers after ${LATENCY_MS} ms`,
      unit: '%',
      value: 'share, %',
      group: (run) => `${run['in flight']} in flight`,
      max: 100,
    },
    bench,
  );
}

module.exports = { wallTime };
