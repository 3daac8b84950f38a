'use strict';

/**
 * Rows 7, 8 and 9 as distributions: what a cancel, a killed worker and a worker that is told to stop
 * cost. Each of them strikes amid a batch of its own; a batch that loses or doubles a line ends the row.
 */
const fs = require('node:fs');
const { createClient, expectComplete, nowMs, pause, waitFor } = require('../api-client');
const { disturbance, quantile, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { watch } = require('../process-stats');
const { startProduct } = require('../product');
const { startRecorder } = require('../recorder');

const IN_FLIGHT = 100;
const LINES = 3_000;
/** Strikes when so many requests have been sent. */
const STRIKE_AT = 800;
const LATENCY_MS = 200;
const TIMEOUT_MS = 120_000;
/** Beyond the end of a cancelled batch: nothing may be sent any more. */
const AFTERMATH_MS = 500;

/** @returns {Promise<import('../report').Result>} */
async function faults(bench) {
  const recorder = await startRecorder();
  const concurrency = { global: IN_FLIGHT, per_model: IN_FLIGHT };
  const product = await startProduct({
    ...bench,
    gatewayUrl: recorder.url,
    settings: { concurrency },
  });
  try {
    const file = await inputFile(bench.scratch, { lines: LINES });
    const scene = { bench, recorder, product, file, client: createClient(product.api) };
    await whole(scene, (await submitted(scene)).id);
    const observation = watch({ roots: product.pids, memoryOf: process.pid });
    const runs = [];
    for (let i = 0; i < bench.faultRuns; i++) {
      runs.push({ ...(await cancelled(scene)), ...(await killed(scene)), ...(await told(scene)) });
      bench.note(`faults ${i + 1} of ${bench.faultRuns}: ${JSON.stringify(runs.at(-1))}`);
    }
    const others = disturbance(observation.end());
    return { row: 'faults', title: 'what faults cost', verdicts: [], runs: spreads(runs, others) };
  } finally {
    await product.stop();
    await recorder.stop();
  }
}

/** A batch, well under way. */
async function submitted({ client, recorder, file }) {
  const fileId = await client.upload(file);
  recorder.reset({ latencyMs: LATENCY_MS });
  const { id } = await client.create(fileId);
  const isAmid = () => (recorder.arrivals.length >= STRIKE_AT ? true : null);
  await waitFor(isAmid, { everyMs: 5, timeoutMs: TIMEOUT_MS, what: `${STRIKE_AT} requests` });
  return { id };
}

/** Waits for the end; every line must be answered, once. */
async function whole({ client, recorder }, id) {
  const { batch } = await client.ended(id, { everyMs: 50, timeoutMs: TIMEOUT_MS });
  expectComplete(batch, LINES);
  const lines = new Set(recorder.arrivals.map(({ lineId }) => lineId)).size;
  if (lines !== LINES) throw new Error(`${LINES} lines are complete, ${lines} were sent`);
  const results = await client.content(batch.output_file_id);
  const ids = results.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line).id));
  if (ids.length === LINES && new Set(ids).size === LINES) return;
  throw new Error(`${ids.length} results of ${new Set(ids).size} lines, not ${LINES}`);
}

async function cancelled(scene) {
  const { client, recorder } = scene;
  const { id } = await submitted(scene);
  const { sentMs } = await client.cancel(id);
  const { batch, atMs } = await client.ended(id, { everyMs: 5, timeoutMs: TIMEOUT_MS });
  if (batch.status !== 'cancelled') throw new Error(`batch ${id} is ${batch.status}`);
  await pause(AFTERMATH_MS);
  const lastMs = Math.max(...recorder.arrivals.map((arrival) => arrival.atMs));
  return {
    'cancel to last request, s': seconds(lastMs - sentMs),
    'cancel to terminal, s': seconds(atMs - sentMs),
  };
}

async function killed(scene) {
  const { recorder, product } = scene;
  const { id } = await submitted(scene);
  const strikeMs = nowMs();
  process.kill(product.pidOf('worker'), 'SIGKILL');
  const running = inFlight(recorder.arrivals, strikeMs);
  await whole(scene, id);
  return {
    'kill to its lines sent again, s': seconds(resumedMs(recorder.arrivals, strikeMs) - strikeMs),
    'in flight at the kill': running,
    'sent again after the kill': recorder.arrivals.length - LINES,
  };
}

async function told(scene) {
  const { recorder, product } = scene;
  const { id } = await submitted(scene);
  const strikeMs = nowMs();
  const pid = product.pidOf('worker');
  process.kill(pid, 'SIGTERM');
  const isGone = () => (fs.existsSync(`/proc/${pid}`) ? null : nowMs());
  const goneMs = await waitFor(isGone, { everyMs: 2, timeoutMs: TIMEOUT_MS, what: 'exit' });
  await whole(scene, id);
  return {
    'SIGTERM to exit, s': seconds(goneMs - strikeMs),
    'SIGTERM to the next request, s': seconds(resumedMs(recorder.arrivals, goneMs) - strikeMs),
    'sent again after SIGTERM': recorder.arrivals.length - LINES,
  };
}

/** Requests of which neither end was seen at that moment. */
function inFlight(arrivals, atMs) {
  return arrivals.filter((one) => one.atMs <= atMs && (one.endedAtMs ?? Infinity) >= atMs).length;
}

/** The first request after the silence that a dead worker leaves: some were under way when it died. */
function resumedMs(arrivals, fromMs) {
  const later = arrivals.filter(({ atMs }) => atMs > fromMs + 100);
  return later.length === 0 ? Infinity : later[0].atMs;
}

/** One row for each figure. */
function spreads(runs, others) {
  return Object.keys(runs[0]).map((figure) => {
    const values = runs.map((run) => run[figure]);
    const at = (share) => rounded(quantile(values, share), 3);
    const [min, median, p95, max] = [at(0), at(0.5), at(0.95), at(1)];
    return { figure, runs: values.length, min, median, p95, max, ...others };
  });
}

const seconds = (ms) => rounded(Math.max(0, ms) / 1000, 3);

module.exports = { faults };
