'use strict';

/** What batches cost that wait for the permits of one model: history events, processor time. */
const { Client, Connection } = require('@temporalio/client');
const { rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { inScene } = require('../scene');
const { cpuSec, family } = require('../process-stats');

const PERMITS = 2;
const LATENCY_MS = 20_000;
const LINES = 200;
const CALLERS = 8;
/** Until every batch has asked for a permit in vain. */
const SETTLE_MS = 90_000;
const HOUR_MS = 3_600_000;

/** @returns {Promise<import('../report').Result>} */
async function waitingBatches(bench) {
  const batches = bench.quick ? 50 : 500;
  const windowMs = bench.quick ? 120_000 : 300_000;
  const file = await inputFile(bench.scratch, { lines: LINES });
  const settings = { concurrency: { per_model: PERMITS } };
  return inScene({ bench, settings, warm: false }, async (scene) => {
    const run = await measure(scene, { file, batches, windowMs });
    const events = run['events an hour, most of those that only wait'];
    const verdict = { value: `${events}`, must: '≤ 100', aim: '', met: events <= 100 };
    const what = 'history events of a waiting batch in an hour';
    const title = `${batches} batches wait for ${PERMITS} permits`;
    return { row: 13, title, verdicts: [{ what, ...verdict }], runs: [run] };
  });
}

async function measure({ client, mock, product }, { file, batches, windowMs }) {
  const temporal = await openTemporal(product);
  try {
    const fileId = await client.upload(file);
    await mock.reset({ latencyMs: LATENCY_MS });
    const ids = await client.createMany(fileId, batches);
    await pause(SETTLE_MS);
    const before = await look(temporal.client, ids, { mock, product });
    await pause(windowMs);
    const after = await look(temporal.client, ids, { mock, product });
    return figures({ before, after, ids });
  } finally {
    await temporal.close();
  }
}

/** History lengths by batch, answers so far, and processor time of worker and Temporal. */
async function look(temporal, ids, { mock, product }) {
  const lengths = new Map();
  const left = [...ids];
  const caller = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const { historyLength } = await temporal.workflow.getHandle(id).describe();
      lengths.set(id, historyLength);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: CALLERS }, caller));
  const cpu = (part) => family([product.pidOf(part)]).reduce((sum, pid) => sum + cpuSec(pid), 0);
  const { requests } = await mock.stats();
  const parts = { worker: cpu('worker'), temporal: cpu('temporal') };
  return { atMs: startedMs, lengths, requests, ...parts };
}

function figures({ before, after, ids }) {
  const spanMs = after.atMs - before.atMs;
  const grown = ids.map((id) => after.lengths.get(id) - before.lengths.get(id));
  const perHour = grown.map((events) => (events * HOUR_MS) / spanMs).sort((a, b) => a - b);
  // Those that got a permit meanwhile did not only wait: at most one for each answer and permit.
  const served = after.requests - before.requests + PERMITS;
  const waiting = perHour.slice(0, Math.max(1, perHour.length - served));
  const capacity = (PERMITS * spanMs) / LATENCY_MS;
  return {
    batches: ids.length,
    'measured, s': rounded(spanMs / 1000, 0),
    'events an hour, mean of all': rounded(perHour.reduce((a, b) => a + b, 0) / ids.length, 1),
    'events an hour, most of those that only wait': rounded(waiting.at(-1), 1),
    'requests, of what the permits allow': rounded(
      (after.requests - before.requests) / capacity,
      2,
    ),
    'worker, cores': rounded(((after.worker - before.worker) * 1000) / spanMs, 2),
    'Temporal, cores': rounded(((after.temporal - before.temporal) * 1000) / spanMs, 2),
  };
}

async function openTemporal(product) {
  const connection = await Connection.connect({ address: product.temporalAddress });
  const close = () => connection.close();
  return { client: new Client({ connection, namespace: product.temporalNamespace }), close };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

module.exports = { waitingBatches };
