'use strict';

/** Rows D5 and D6: what delegated models cost everything else. */
const { pause } = require('../api-client');
const { calmRuns } = require('../calm');
const { fileOf, inDelegatedScene, jobsSeen } = require('../delegated-scene');
const { disturbance, median, percent, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { cpuSec } = require('../process-stats');
const { atLeast } = require('../verdicts');

const JOBS = 500;
const WATCHED_MS = 60_000;
const WATCHED_QUICK_MS = 30_000;
const IDLE_MS = 10_000;
const IN_FLIGHT = 100;
const LATENCY_MS = 50;
const LINE_BYTES = 1_024;
const TIMEOUT_MS = 180_000;

/** Row D5. @returns {Promise<import('../report').Result>} */
async function watchedJobs(bench) {
  const file = await fileOf(bench, { model: 'slow-poll', lines: 1 });
  return inDelegatedScene({ bench, warm: false }, async (scene) => {
    const run = await watched(scene, file);
    const share = run['worker, cores'];
    const limits = { must: '≤ 10 %', aim: '≤ 3 %', met: share <= 0.1 };
    const what = `D5: worker, ${JOBS} open jobs`;
    const verdicts = [{ what, value: percent(share), ...limits }];
    return { row: 'D5', title: `${JOBS} jobs are watched every 30 s`, verdicts, runs: [run] };
  });
}

async function watched({ bench, client, provider, product, observe }, file) {
  const watchedMs = bench.quick ? WATCHED_QUICK_MS : WATCHED_MS;
  const idle = await cores(product, IDLE_MS);
  const fileId = await client.upload(file);
  provider.reset({ holds: true });
  await client.createMany(fileId, JOBS);
  await jobsSeen(provider, JOBS);
  const looks = () => provider.jobs.reduce((sum, job) => sum + job.looks, 0);
  const before = looks();
  const observation = observe();
  const busy = await cores(product, watchedMs);
  return {
    jobs: provider.jobs.length,
    'looks a second': rounded(((looks() - before) * 1000) / watchedMs, 1),
    'worker, cores': rounded(busy, 3),
    'worker before, cores': rounded(idle, 3),
    ...disturbance(observation.end()),
  };
}

/** Processor time of the worker over a span. */
async function cores({ workerPid }, spanMs) {
  const before = { sec: cpuSec(workerPid), ms: performance.now() };
  await pause(spanMs);
  return ((cpuSec(workerPid) - before.sec) * 1000) / (performance.now() - before.ms);
}

/** Row D6. @returns {Promise<import('../report').Result>} */
async function localBeside(bench) {
  const lines = bench.quick ? 20_000 : 40_000;
  const shapes = {
    alone: { lines, modelOf: () => 'local', name: 'local' },
    beside: {
      lines: 2 * lines,
      modelOf: (index) => (index % 2 === 0 ? 'local' : 'one-part'),
      name: 'local-beside',
    },
  };
  const settings = { concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT } };
  return inDelegatedScene({ bench, settings }, async (scene) => {
    const runs = [];
    for (const [what, shape] of Object.entries(shapes)) {
      const file = await inputFile(bench.scratch, { ...shape, lineBytes: LINE_BYTES });
      const found = await calmRuns(bench, () => localRate(scene, { file, lines: shape.lines }));
      runs.push(...found.map((run) => ({ what, ...run })));
    }
    const title = 'a local model beside a delegated one of as many lines';
    return { row: 'D6', title, verdicts: [rateVerdict(runs)], runs };
  });
}

/** Only local lines reach the mock, so its times are those of the local model. */
async function localRate({ run, provider }, { file, lines }) {
  provider.reset();
  const done = await run({ file, lines, latencyMs: LATENCY_MS, timeoutMs: TIMEOUT_MS });
  const { requests, firstRequestMs, lastAnswerMs } = done.stats;
  return {
    'local lines': requests,
    jobs: provider.jobs.length,
    'lines a second': rounded((requests * 1000) / (lastAnswerMs - firstRequestMs)),
    'completed, s': rounded(done.createToCompletedMs / 1000, 2),
    ...disturbance(done.usage),
  };
}

function rateVerdict(runs) {
  const of = (what) =>
    median(runs.filter((run) => run.what === what).map((run) => run['lines a second']));
  const bounds = { unit: 'x', must: 0.95, aim: 0.99 };
  return atLeast('D6: beside, against alone', [rounded(of('beside') / of('alone'), 2)], bounds);
}

module.exports = { localBeside, watchedJobs };
