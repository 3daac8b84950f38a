'use strict';

/**
 * Row F12: what a batch loses when the gateway in front of its model server is killed, and comes back before the circuit
 * breaker of the worker opens. Half of the open lines wait at the gateway.
 */
const fs = require('node:fs');
const path = require('node:path');
const { freePort } = require('../../test/support/free-port');
const { createClient, nowMs, pause, waitFor } = require('../api-client');
const { startChild } = require('../children');
const { quantile, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { startProduct } = require('../product');
const { startRecorder } = require('../recorder');

const OPEN = 100;
const IN_FLIGHT = 50;
const LINES = 2_000;
/** Kills when so many requests have been sent. */
const STRIKE_AT = 600;
const LATENCY_MS = 100;
const TIMEOUT_MS = 60_000;
/** How long nothing listens at the gateway's address, besides the start of its process. */
const AWAY_MS = 500;

/** @returns {Promise<import('../report').Result>} */
async function gatewayKill(bench) {
  const recorder = await startRecorder();
  const gateway = await prepareGateway(bench, recorder.url);
  let child = await gateway.start();
  const product = await startProduct({
    ...bench,
    gatewayUrl: gateway.url,
    settings: settingsOf(gateway),
  });
  try {
    const scene = { recorder, client: createClient(product.api) };
    const file = await inputFile(bench.scratch, { lines: LINES });
    const runs = [];
    for (let i = 0; i < bench.faultRuns; i++) {
      const id = await submitted(scene, file);
      process.kill(child.pid, 'SIGKILL');
      const killedMs = nowMs();
      await pause(AWAY_MS);
      child = await gateway.start();
      const backMs = nowMs();
      runs.push({ ...(await outcome(scene, id)), ...resumed(recorder, { killedMs, backMs }) });
      bench.note(`gateway kill ${i + 1} of ${bench.faultRuns}: ${JSON.stringify(runs.at(-1))}`);
    }
    return {
      row: 'F12',
      title: 'the gateway is killed',
      verdicts: judge(runs),
      runs: spreads(runs),
    };
  } finally {
    await product.stop();
    await child.stop(5_000);
    await recorder.stop();
  }
}

/** A gateway that can be started again and again at one address. */
async function prepareGateway({ root, scratch }, backend) {
  const [port, observability] = [await freePort(), await freePort()];
  const tokenFile = path.join(scratch, `token-${port}`);
  fs.writeFileSync(tokenFile, 'a-token-of-all-workers');
  const config = path.join(scratch, `gateway-${port}.json`);
  const gateway = {
    ...{ port, observability_port: observability, worker_token_file: tokenFile },
    pools: { main: { models: ['*'], backends: [{ url: backend }] } },
    request_queue_controller: {
      watermark_per_backend: IN_FLIGHT,
      lower_bound_per_backend: IN_FLIGHT,
      upper_bound_per_backend: IN_FLIGHT,
    },
    bands: { ceilings: [1, 1, 1] },
  };
  fs.writeFileSync(config, JSON.stringify({ log: { level: 'info' }, gateway }));
  const isServing = () =>
    fetch(`http://127.0.0.1:${observability}/ready`).then(
      ({ ok }) => (ok ? true : null),
      () => null,
    );
  return {
    url: `http://127.0.0.1:${port}`,
    tokenFile,
    async start() {
      const child = await startChild({
        command: process.execPath,
        args: [path.join(root, 'cli', 'nightshift.js'), 'gateway', '--config', config],
        isReady: (line) => line.includes('gateway ready'),
        readyOn: 'stderr',
        readyTimeoutMs: TIMEOUT_MS,
      });
      await waitFor(isServing, { everyMs: 5, timeoutMs: TIMEOUT_MS, what: 'a ready gateway' });
      return child;
    },
  };
}

/** One retry: a line that used more than one try for the kill would end as an error. */
function settingsOf({ tokenFile }) {
  const route = { api_key_file: tokenFile, send_fairness_header: true, request_timeout: '6m' };
  return {
    concurrency: { global: OPEN, per_model: OPEN },
    global_inference_gateway: { ...route, max_retries: 1 },
  };
}

/** A batch, well under way. */
async function submitted({ client, recorder }, file) {
  const fileId = await client.upload(file);
  recorder.reset({ latencyMs: LATENCY_MS });
  const { id } = await client.create(fileId);
  const isAmid = () => (recorder.arrivals.length >= STRIKE_AT ? true : null);
  await waitFor(isAmid, { everyMs: 2, timeoutMs: TIMEOUT_MS, what: `${STRIKE_AT} requests` });
  return id;
}

/** What the files of the batch lack and have twice, and how often lines were sent. */
async function outcome({ client, recorder }, id) {
  const { batch } = await client.ended(id, { everyMs: 50, timeoutMs: TIMEOUT_MS });
  const results = batch.output_file_id === null ? '' : await client.content(batch.output_file_id);
  const ids = results.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line).id));
  const times = new Map();
  for (const { lineId } of recorder.arrivals) times.set(lineId, (times.get(lineId) ?? 0) + 1);
  return {
    'lines without an answer': LINES - new Set(ids).size,
    'lines twice in the files': ids.length - new Set(ids).size,
    'requests for one line, at most': Math.max(...times.values()),
    'lines sent again': [...times.values()].filter((count) => count > 1).length,
  };
}

/** From the kill to the return, and from the return to the first request at the model server. */
function resumed({ arrivals }, { killedMs, backMs }) {
  // Some requests were on their way when the gateway died.
  const firstMs = Math.min(
    ...arrivals.map(({ atMs }) => atMs).filter((atMs) => atMs > killedMs + 100),
  );
  return {
    'kill to ready again, s': seconds(backMs - killedMs),
    'ready to the first line, s': seconds(Math.max(0, firstMs - backMs)),
  };
}

function judge(runs) {
  const most = (figure) => Math.max(...runs.map((run) => run[figure]));
  const verdict = (what, value, [must, aim], unit = '') => ({
    ...{ what, value: `${value}${unit}`, must: `≤ ${must}${unit}`, aim: `≤ ${aim}${unit}` },
    met: value <= must,
  });
  return [
    verdict('lost', most('lines without an answer'), [0, 0]),
    verdict('doubled', most('lines twice in the files'), [0, 0]),
    verdict('tries used by an open line', most('requests for one line, at most') - 1, [1, 1]),
    verdict('first line after its return', most('ready to the first line, s'), [6, 1], ' s'),
  ];
}

/** One row for each figure. */
function spreads(runs) {
  return Object.keys(runs[0]).map((figure) => {
    const values = runs.map((run) => run[figure]);
    const at = (share) => rounded(quantile(values, share), 3);
    return { figure, runs: values.length, min: at(0), median: at(0.5), max: at(1) };
  });
}

const seconds = (ms) => rounded(ms / 1000, 3);

module.exports = { gatewayKill };
