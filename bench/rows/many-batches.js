'use strict';

/** Row 11: 200 batches of one line each. */
const { expectComplete, nowMs } = require('../api-client');
const { calmRuns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { inScene } = require('../scene');
const { atMost } = require('../verdicts');

const BATCHES = 200;
const LATENCY_MS = 50;
const TIMEOUT_MS = 180_000;

/** With the limits as they are shipped. @returns {Promise<import('../report').Result>} */
async function manyBatches(bench) {
  const file = await inputFile(bench.scratch, { lines: 1 });
  return inScene({ bench }, async (scene) => {
    const runs = await calmRuns(bench, () => allAtOnce(scene, file));
    const took = runs.map((run) => run['all completed, s']);
    const verdict = atMost('all completed', took, { unit: ' s', must: 10 });
    return { row: 11, title: `${BATCHES} batches of one line`, verdicts: [verdict], runs };
  });
}

async function allAtOnce({ client, mock, observe }, file) {
  const fileId = await client.upload(file);
  await mock.reset({ latencyMs: LATENCY_MS });
  const observation = observe();
  const startedMs = nowMs();
  const ids = await client.createMany(fileId, BATCHES);
  const createdMs = nowMs();
  // One after another: who ended before it is asked answers at once.
  for (const id of ids) {
    expectComplete((await client.ended(id, { timeoutMs: TIMEOUT_MS })).batch, 1);
  }
  const endedMs = nowMs();
  const usage = observation.end();
  return {
    'all created, s': rounded((createdMs - startedMs) / 1000, 2),
    'all completed, s': rounded((endedMs - startedMs) / 1000, 2),
    'cores used': rounded(usage.oursCores, 2),
    ...disturbance(usage),
  };
}

module.exports = { manyBatches };
