'use strict';

/** Row 7: how long a cancelled batch goes on sending, and when it has ended. */
const { pause, waitFor } = require('../api-client');
const { calmRuns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { inScene } = require('../scene');
const { atMost, figure } = require('../verdicts');

const IN_FLIGHT = 100;
const LINES = 50_000;
const CANCEL_AT = 3_000;
const TIMEOUT_MS = 120_000;
/** A second beyond the end: nothing may be sent any more. */
const AFTERMATH_MS = 1_000;

/** @returns {Promise<import('../report').Result>} */
async function cancel(bench) {
  const file = await inputFile(bench.scratch, { lines: LINES });
  const concurrency = { global: IN_FLIGHT, per_model: IN_FLIGHT };
  return inScene({ bench, settings: { concurrency } }, async (scene) => {
    const runs = [];
    for (const latencyMs of [50, 1_000]) {
      runs.push(...(await calmRuns(bench, () => cancelled(scene, { file, latencyMs }))));
    }
    return { row: 7, title: 'cancel', verdicts: verdicts(runs), runs };
  });
}

async function cancelled({ client, mock, observe }, { file, latencyMs }) {
  const fileId = await client.upload(file);
  await mock.reset({ latencyMs });
  const observation = observe();
  const { id } = await client.create(fileId);
  const enough = latencyMs > 500 ? IN_FLIGHT * 2 : CANCEL_AT;
  const sent = async () => ((await mock.stats()).requests >= enough ? true : null);
  await waitFor(sent, { timeoutMs: TIMEOUT_MS, what: `${enough} requests` });
  const { sentMs } = await client.cancel(id);
  const { batch, atMs } = await client.ended(id, { everyMs: 20, timeoutMs: TIMEOUT_MS });
  const usage = observation.end();
  await pause(AFTERMATH_MS);
  const stats = await mock.stats();
  const { completed, failed } = batch.request_counts;
  if (batch.status !== 'cancelled') throw new Error(`batch ${id} is ${batch.status}`);
  return {
    'answer, ms': latencyMs,
    'to last request, s': seconds(stats.lastRequestMs - sentMs),
    'to terminal, s': seconds(atMs - sentMs),
    'last answer to terminal, s': seconds(atMs - stats.lastAnswerMs),
    'sent, not in the files': stats.requests - completed - failed,
    ...disturbance(usage),
  };
}

function verdicts(runs) {
  const of = (column) => runs.map((run) => run[column]);
  const sec = { unit: ' s', digits: 3 };
  const after = figure('terminal after the last answer', of('last answer to terminal, s'), sec);
  return [
    atMost('last request', of('to last request, s'), { ...sec, must: 3, aim: 0.2 }),
    // To the bound, the grace of requests in flight is added.
    { ...atMost('terminal', of('to terminal, s'), { ...sec, must: 5 }), must: '≤ 5 s + grace' },
    { ...after, aim: '≤ 0.5 s' },
  ];
}

const seconds = (ms) => rounded(Math.max(0, ms) / 1000, 3);

module.exports = { cancel };
