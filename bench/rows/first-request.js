'use strict';

/** Row 6: how long a user waits for the first request, and for the end of a batch of one line. */
const { waitFor } = require('../api-client');
const { calmRuns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile, LARGE_BYTES } = require('../input-files');
const { inScene } = require('../scene');
const { atMost } = require('../verdicts');

const LATENCY_MS = 50;
const LINES = 50_000;
const TIMEOUT_MS = 120_000;

/** @returns {Promise<import('../report').Result>} */
async function firstRequest(bench) {
  const large = await inputFile(bench.scratch, { lines: LINES, lineBytes: LARGE_BYTES });
  const small = await inputFile(bench.scratch, { lines: LINES });
  const single = await inputFile(bench.scratch, { lines: 1 });
  const shapes = [
    { what: '50,000 lines of 4 KB', file: large },
    { what: '50,000 lines of 279 B', file: small },
  ];
  return inScene(
    { bench, settings: { concurrency: { global: 100, per_model: 100 } } },
    async (scene) => {
      const runs = [];
      for (const { what, file } of shapes) {
        const found = await calmRuns(bench, () => untilFirst(scene, file));
        runs.push(...found.map((run) => ({ what, ...run })));
      }
      const ones = await calmRuns(bench, () => wholeOne(scene, single), bench.repeat * 3);
      runs.push(...ones.map((run) => ({ what: 'one line', ...run })));
      return { row: 6, title: 'create to first request', verdicts: verdicts(runs), runs };
    },
  );
}

/** Cancelled once the first request is seen: the rest of the batch is no news here. */
async function untilFirst({ client, mock, observe }, file) {
  const fileId = await client.upload(file);
  await mock.reset({ latencyMs: LATENCY_MS });
  const observation = observe();
  const { id, sentMs } = await client.create(fileId);
  const seen = async () => {
    const { firstRequestMs } = await mock.stats();
    return firstRequestMs > 0 ? firstRequestMs : null;
  };
  const firstMs = await waitFor(seen, { timeoutMs: TIMEOUT_MS, what: 'first request' });
  const usage = observation.end();
  await client.cancel(id);
  await client.ended(id, { timeoutMs: TIMEOUT_MS });
  return { 'to first, s': seconds(firstMs - sentMs), 'to completed, s': '', ...disturbance(usage) };
}

async function wholeOne(scene, file) {
  const run = { file, lines: 1, latencyMs: LATENCY_MS, everyMs: 5, timeoutMs: TIMEOUT_MS };
  const { createToFirstMs, createToCompletedMs, usage } = await scene.run(run);
  return {
    'to first, s': seconds(createToFirstMs),
    'to completed, s': seconds(createToCompletedMs),
    ...disturbance(usage),
  };
}

function verdicts(runs) {
  const of = (what, column) => runs.filter((run) => run.what === what).map((run) => run[column]);
  const first = of('50,000 lines of 4 KB', 'to first, s');
  const one = of('one line', 'to completed, s');
  return [
    atMost('first request, 50 k x 4 KB', first, { unit: ' s', must: 0.4 }),
    atMost('one line, completed', one, { unit: ' s', must: 0.3 }),
  ];
}

const seconds = (ms) => rounded(ms / 1000, 3);

module.exports = { firstRequest };
