'use strict';

/** Row D3: what a worker keeps in memory of a long delegated batch. */
const { fileOf, inDelegatedScene } = require('../delegated-scene');
const { disturbance, median, rounded } = require('../figures');
const { memoryMb } = require('../process-stats');

const LINES = 1_000_000;
const QUICK_LINES = 200_000;
const LINES_OF_A_PART = 50_000;
/** A form may have at most 512 MB. */
const LINE_BYTES = 450;
const MUST_MB = 80;
const AIM_MB = 40;

/** @returns {Promise<import('../report').Result>} */
async function delegatedMemory(bench) {
  const lines = bench.quick ? QUICK_LINES : LINES;
  const file = await fileOf(bench, { model: 'one-part', lines, lineBytes: LINE_BYTES });
  const runs = [];
  for (let i = 0; i < bench.repeat; i++) runs.push(await inFreshWorker(bench, { file, lines }));
  const over = rounded(median(runs.map((run) => run['peak over idle, MB'])));
  const parts = lines / LINES_OF_A_PART;
  const limits = { must: `≤ ${MUST_MB} MB`, aim: `≤ ${AIM_MB} MB`, met: over <= MUST_MB };
  const verdicts = [{ what: `D3: ${lines} lines, ${parts} parts`, value: `${over} MB`, ...limits }];
  return { row: 'D3', title: 'memory of the worker beside idle', verdicts, runs };
}

/** A new process each time, since a peak remembers everything that was before. */
async function inFreshWorker(bench, { file, lines }) {
  const settings = { limits: { max_requests: 2_000_000, max_file_bytes: '512MiB' } };
  return inDelegatedScene({ bench, settings, warm: false }, async (scene) => {
    const idleMb = memoryMb(scene.product.workerPid).now;
    const run = await scene.runJobs({ file, lines, timeoutMs: 120_000 + lines });
    return {
      parts: run.parts,
      'idle, MB': rounded(idleMb),
      'steady, MB': rounded(run.usage.steadyMb),
      'peak, MB': rounded(run.usage.peakMb),
      'peak over idle, MB': rounded(run.usage.peakMb - idleMb),
      'lines a second': rounded(lines / (run.createToCompletedMs / 1000)),
      ...disturbance(run.usage),
    };
  });
}

module.exports = { delegatedMemory };
