'use strict';

/** Row F11: what a gateway between worker and model server costs a batch. */
const fs = require('node:fs');
const path = require('node:path');
const { calmRuns } = require('../calm');
const { disturbance, median, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { startMock } = require('../mock-server');
const { startGateway } = require('../peers/proxies');
const { cpuSec } = require('../process-stats');
const { inScene, inStack } = require('../scene');

const LATENCY_MS = 50;
/** Requests at the model server at a time, and the part of the rate without a gateway that is required. */
const CASES = [
  { inFlight: 100, lines: 20_000, must: 0.95, aim: 0.98 },
  { inFlight: 256, lines: 40_000, must: 0.88, aim: 0.95 },
];
const QUICK_LINES = 0.5;

/** @returns {Promise<import('../report').Result>} */
async function throughGateway(bench) {
  const runs = [];
  for (let round = 0; round < bench.repeat; round++) {
    for (const one of CASES) {
      const lines = bench.quick ? one.lines * QUICK_LINES : one.lines;
      runs.push(await direct(bench, { ...one, lines }));
      runs.push(await behindGateway(bench, { ...one, lines }));
    }
  }
  const title = `batch through the gateway, ${LATENCY_MS} ms`;
  return { row: 'F11', title, verdicts: CASES.map((one) => judge(runs, one)), runs };
}

function direct(bench, { inFlight, lines }) {
  const settings = { concurrency: { global: inFlight, per_model: inFlight } };
  return inScene({ bench, settings }, (scene) =>
    measured(scene, { who: 'direct', inFlight, lines, cpuOf: () => 0 }),
  );
}

/** Half of the worker's permits wait in the gateway, as docs/gateway.md recommends. */
async function behindGateway(bench, { inFlight, lines }) {
  const mock = await startMock();
  const token = path.join(bench.scratch, 'worker-token');
  fs.writeFileSync(token, 'a-token-of-all-workers');
  const gateway = await startGateway(mock.address, bench, {
    worker_token_file: token,
    bands: { ceilings: [1, 1, 1] },
    request_queue_controller: {
      watermark_per_backend: inFlight,
      lower_bound_per_backend: inFlight,
      upper_bound_per_backend: inFlight,
    },
  });
  const permits = 2 * inFlight;
  const settings = {
    // Each open request reserves 256 KiB.
    concurrency: { global: permits, per_model: permits, in_flight_bytes: '256MiB' },
    global_inference_gateway: { api_key_file: token, send_fairness_header: true },
  };
  const cpuOf = () => cpuSec(gateway.pid);
  try {
    return await inStack(
      { bench, settings, mock, gatewayUrl: `http://${gateway.address}` },
      (scene) => measured(scene, { who: 'gateway', inFlight, lines, cpuOf }),
    );
  } finally {
    await gateway.stop();
    await mock.stop();
  }
}

async function measured(scene, { who, inFlight, lines, cpuOf }) {
  const file = await inputFile(scene.bench.scratch, { lines });
  const run = async () => {
    const cpuBefore = cpuOf();
    const { createToCompletedMs, stats, usage } = await scene.run({
      file,
      lines,
      latencyMs: LATENCY_MS,
      timeoutMs: 120_000,
    });
    const sendingMs = stats.lastAnswerMs - stats.firstRequestMs;
    return {
      'lines/s': rounded(lines / (createToCompletedMs / 1_000)),
      'sending alone, lines/s': rounded(lines / (sendingMs / 1_000)),
      'worker, us/line': rounded((usage.cpuSec / lines) * 1e6),
      'gateway, us/line': rounded(((cpuOf() - cpuBefore) / lines) * 1e6),
      ...disturbance(usage),
    };
  };
  const [found] = await calmRuns({ ...scene.bench, retries: 0 }, run, 1);
  return { who, 'in flight': inFlight, lines, ...found };
}

function judge(runs, { inFlight, must, aim }) {
  const rate = (who) =>
    median(
      runs
        .filter((run) => run.who === who && run['in flight'] === inFlight)
        .map((run) => run['lines/s']),
    );
  const ratio = rounded(rate('gateway') / rate('direct'), 2);
  const what = `${inFlight} in flight`;
  return { what, value: `${ratio}x`, must: `≥ ${must}x`, aim: `≥ ${aim}x`, met: ratio >= must };
}

module.exports = { throughGateway };
