'use strict';

/**
 * Rows F7 and F8: what users notice of a batch, and how fast a batch gets and gives up places. Both run the engines,
 * users and batch of `nightshift demo --scene flow`, in processes of their own.
 */
const { execFile } = require('node:child_process');
const { setMaxListeners } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { promisify } = require('node:util');
const { calmRuns } = require('../calm');
const { disturbance, median, percent, rounded } = require('../figures');
const { watch } = require('../process-stats');

const SECONDS = { quick: 22, full: 44 };
const F7_MUST = { p95: 1.15, p99: 1.25, idle: 0.85 };
const F8_MUST = { coldSec: 60, inFlight: 0.25 };
const POLL_MS = 100;
const COLD_TIMEOUT_MS = 60_000;
const FULL = 0.9;
/** Bursts of the scene begin 5, 15 and 25 s after the begin of a part. */
const BURSTS = [15_000, 25_000];
const AFTER_MS = 2_000;
const BURSTS_MS = 28_000;

/** Row F7. @returns {Promise<import('../report').Result>} */
async function usersBesideBatch(bench) {
  const runs = [];
  for (let round = 0; round < bench.repeat; round++) {
    const found = await calmRuns({ ...bench, retries: 0 }, () => scene(bench, round), 1);
    runs.push(...found.flatMap(({ rows }) => rows));
  }
  const of = (arm, key) =>
    median(runs.filter((run) => run.arm.includes(arm)).map((run) => run[key]));
  const ratio = (key) => of('gateway', key) / of('alone', key);
  const { p95, p99, idle } = F7_MUST;
  const used = of('gateway', 'idle');
  return {
    ...{ row: 'F7', title: 'time to the first token of users beside a batch' },
    verdicts: [
      verdict('p95', `${ratio('p95, ms').toFixed(2)}x`, `≤ ${p95}x`, ratio('p95, ms') <= p95),
      verdict('p99', `${ratio('p99, ms').toFixed(2)}x`, `≤ ${p99}x`, ratio('p99, ms') <= p99),
      verdict('idle capacity used', percent(used), `≥ ${percent(idle)}`, used >= idle),
    ],
    runs: runs.map((run) => ({ ...run, idle: run.idle === null ? '' : percent(run.idle) })),
  };
}

/** Runs the scene once; one row for each of its parts. */
async function scene(bench, round) {
  const record = path.join(bench.scratch, `scene-${round}.json`);
  const seconds = bench.quick ? SECONDS.quick : SECONDS.full;
  const observation = watch({ roots: [process.pid], memoryOf: process.pid });
  const cli = path.join(bench.root, 'cli', 'nightshift.js');
  const args = ['demo', '--scene', 'flow', '--seconds', String(seconds), '--record', record];
  await promisify(execFile)(process.execPath, [cli, ...args]);
  const usage = observation.end();
  const { figures } = JSON.parse(fs.readFileSync(record, 'utf8'));
  bench.note(`bench/plot-scene.js draws ${record}`);
  const rows = figures.map(({ name, p50, p95, p99, linesPerSec, idleUsed, failed }) => ({
    arm: name,
    ...{ 'p50, ms': rounded(p50), 'p95, ms': rounded(p95), 'p99, ms': rounded(p99) },
    ...{ 'lines/s': rounded(linesPerSec, 1), idle: idleUsed, failed },
    ...disturbance(usage),
  }));
  return { rows, ...disturbance(usage) };
}

/** Row F8. @returns {Promise<import('../report').Result>} */
async function coldStart(bench) {
  const runs = await calmRuns({ ...bench, retries: 0 }, () => coldRun(bench), bench.repeat);
  const coldSec = median(runs.map((run) => run['90 % of the knee after, s']));
  const inFlight = median(runs.map((run) => run['lines in flight, share of the knee']));
  const must = F8_MUST;
  return {
    ...{ row: 'F8', title: 'places of a batch after a cold start and after a burst began', runs },
    verdicts: [
      verdict(
        'cold start to 90 % of the knee',
        `${coldSec} s`,
        `≤ ${must.coldSec} s`,
        coldSec <= must.coldSec,
      ),
      verdict(
        'lines in flight 2 s after a burst began',
        percent(inFlight),
        `≤ ${percent(must.inFlight)}`,
        inFlight <= must.inFlight,
      ),
    ],
  };
}

async function coldRun(bench) {
  const from = (file) => require(path.join(bench.root, 'dist/cli/stack/flow-scene', file));
  const { ARMS, KNEE } = from('scene-plan.js');
  const { measureCapacity } = from('measure-capacity.js');
  const { runArm } = from('run-arm.js');
  const abort = new AbortController();
  // Every open request listens.
  setMaxListeners(0, abort.signal);
  const observation = watch({ roots: [process.pid], memoryOf: process.pid });
  const servers = await from('scene-servers.js').startSceneServers(abort.signal);
  try {
    const capacity = await measureCapacity(servers, 4_000, abort.signal);
    const cold = await untilFull(from, servers, FULL * KNEE);
    const arm = ARMS.find(({ isControlled, hasBatch }) => isControlled && hasBatch);
    const samples = [];
    const startMs = performance.now();
    const timer = setInterval(() => {
      void linesInFlight(servers).then(({ lines }) =>
        samples.push({ atMs: performance.now() - startMs, lines }),
      );
    }, POLL_MS);
    const run = { arm, servers, capacity, durationMs: BURSTS_MS, signal: abort.signal };
    await runArm({ ...run, onAnswer: () => undefined }).finally(() => clearInterval(timer));
    const after = BURSTS.map(
      (burstMs) => samples.find(({ atMs }) => atMs >= burstMs + AFTER_MS).lines,
    );
    const usage = observation.end();
    return {
      '90 % of the knee after, s': rounded(cold / 1_000, 1),
      'lines in flight, share of the knee': rounded(Math.max(...after) / KNEE, 2),
      ...disturbance(usage),
    };
  } finally {
    abort.abort();
    await servers.stop();
  }
}

/** How long a batch alone needs until so many of its lines are in flight behind a new gateway, ms. */
async function untilFull(from, servers, lines) {
  const { PERMITS } = from('scene-plan.js');
  const { SceneClient } = from('scene-client.js');
  const client = new SceneClient();
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  const startMs = performance.now();
  const lane = async (number) => {
    for (let i = 0; !over.signal.aborted; i++) {
      const call = { url: servers.gateway, name: `cold ${number} ${i}`, isStream: false };
      const when = { token: servers.workerToken, dueMs: performance.now(), signal: over.signal };
      await client.send({ ...call, ...when });
    }
  };
  const lanes = Array.from({ length: PERMITS }, (_, number) => lane(number));
  try {
    while (performance.now() - startMs < COLD_TIMEOUT_MS) {
      if ((await linesInFlight(servers)).lines >= lines) break;
      await sleep(POLL_MS);
    }
    return performance.now() - startMs;
  } finally {
    over.abort();
    await Promise.all(lanes);
    client.close();
  }
}

async function linesInFlight({ observability }) {
  const { pools } = await (await fetch(`${observability}/admin/flow`)).json();
  return { lines: pools[0].bands.sheddable.in_flight };
}

function verdict(what, value, must, met) {
  return { what, value, must, aim: '', met };
}

module.exports = { coldStart, usersBesideBatch };
