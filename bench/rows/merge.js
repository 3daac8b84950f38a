'use strict';

/**
 * Row 10: rate and memory of finalization beside `cp` of as many bytes, and rate of downloads beside a
 * server of ten lines. What is compared takes turns.
 */
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { createClient } = require('../api-client');
const { calmRuns } = require('../calm');
const { startChild } = require('../children');
const { disturbance, rounded } = require('../figures');
const { download } = require('../merge/download');
const { cpuSec, watch } = require('../process-stats');
const { startProduct } = require('../product');
const { atLeast, atMost } = require('../verdicts');

const run = promisify(execFile);
const MERGE = path.join(__dirname, '..', 'merge');
const LARGE_BYTES = 1e9;
const QUICK_BYTES = 2e8;
/** The largest upload of one request has 512 MB, so downloads have less than the largest results. */
const UPLOAD_BYTES = 5e8;
/** Pairs of one run, whose sums are compared. */
const TURNS = 3;

/** @returns {Promise<import('../report').Result>} */
async function merge(bench) {
  const folder = fs.mkdtempSync(path.join(bench.scratch, 'merge-'));
  try {
    const made = await batchIn(bench, folder);
    // The first run after the batch was made meets pages that are still being written.
    await mergeOnce(bench, { ...made, turns: 1 });
    const merges = await calmRuns(bench, () => mergeOnce(bench, { ...made, turns: TURNS }));
    const downloads = await downloadRuns(bench, made);
    return result(merges, downloads);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function batchIn(bench, folder) {
  const wanted = bench.quick ? QUICK_BYTES : LARGE_BYTES;
  const { lines, bytes } = await nodeJson('make-batch.js', bench.root, folder, wanted);
  bench.note(`made a batch of ${lines} lines, ${bytes} bytes of output`);
  return { folder, bytes, expected: path.join(folder, 'expected-output.jsonl') };
}

/** Finalization and `cp` in turns; the files are compared outside the measured time. */
async function mergeOnce(bench, { folder, expected, turns }) {
  const observation = watch({ roots: [], memoryOf: process.pid });
  const found = [];
  for (let turn = 0; turn < turns; turn++) {
    const finalized = await nodeJson('finalize.js', bench.root, folder);
    await run('cmp', [expected, finalized.output]);
    await run('cmp', [path.join(folder, 'expected-error.jsonl'), finalized.error]);
    // Each writer begins with as much memory that the last one has freed: fresh pages cost it much more.
    for (const file of [finalized.output, finalized.error]) fs.unlinkSync(file);
    const [cpSec, syncSec] = [await cp(expected), await cp(expected, { synced: true })];
    found.push({ ...finalized, cpSec, syncSec });
  }
  const total = (name) => found.reduce((sum, one) => sum + one[name], 0);
  return {
    'MB/s': rounded((total('bytes') / total('seconds')) * 1e-6),
    'cp, MB/s': rounded((total('bytes') / total('cpSec')) * 1e-6),
    'to cp': rounded(total('cpSec') / total('seconds'), 3),
    'to cp and sync': rounded(total('syncSec') / total('seconds'), 3),
    'CPU s/GB': rounded((total('cpuSec') / total('bytes')) * 1e9, 2),
    'growth, MB': rounded(Math.max(...found.map(({ peakMb, idleMb }) => peakMb - idleMb))),
    ...disturbance(observation.end()),
  };
}

/** Seconds of a copy to a new file; if `synced`, until its bytes are on the disk. */
async function cp(file, { synced = false } = {}) {
  const copy = `${file}.copy`;
  const startedMs = performance.now();
  await run('cp', [file, copy]);
  if (synced) await run('sync', ['-d', copy]);
  const seconds = (performance.now() - startedMs) / 1000;
  fs.unlinkSync(copy);
  return seconds;
}

async function downloadRuns(bench, { expected }) {
  const bytes = Math.min(fs.statSync(expected).size, UPLOAD_BYTES);
  fs.truncateSync(expected, bytes);
  const product = await startProduct({ ...bench, gatewayUrl: NOWHERE });
  try {
    const fileId = await createClient(product.api).upload(expected);
    const plain = await plainServer(expected);
    const own = { url: `${product.api}/files/${fileId}/content`, pid: product.pidOf('api') };
    const peer = { url: `http://127.0.0.1:${plain.readyLine}/`, pid: plain.pid };
    const roots = [...product.pids, plain.pid];
    try {
      for (const { url } of [own, peer]) await download(url, bytes);
      return await calmRuns(bench, () => downloadOnce({ own, peer, roots, bytes }));
    } finally {
      await plain.stop(1_000);
    }
  } finally {
    await product.stop();
  }
}

/** No request is sent to a model here. */
const NOWHERE = 'http://127.0.0.1:9';

function plainServer(file) {
  return startChild({
    command: process.execPath,
    args: [path.join(MERGE, 'plain-server.js'), file],
    isReady: () => true,
    readyTimeoutMs: 10_000,
  });
}

async function downloadOnce({ own, peer, roots, bytes }) {
  const observation = watch({ roots, memoryOf: own.pid });
  const spent = { own: { seconds: 0, cpu: 0 }, peer: { seconds: 0, cpu: 0 } };
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [name, { url, pid }] of Object.entries({ own, peer })) {
      const before = cpuSec(pid);
      spent[name].seconds += await download(url, bytes);
      spent[name].cpu += cpuSec(pid) - before;
    }
  }
  const usage = observation.end();
  const rate = ({ seconds }) => rounded((bytes * TURNS * 1e-6) / seconds);
  const cost = ({ cpu }) => rounded((cpu / (bytes * TURNS)) * 1e9, 2);
  return {
    'API, MB/s': rate(spent.own),
    'plain, MB/s': rate(spent.peer),
    'to plain': rounded(spent.peer.seconds / spent.own.seconds, 3),
    'API, CPU s/GB': cost(spent.own),
    'plain, CPU s/GB': cost(spent.peer),
    'API, peak MB': rounded(usage.peakMb),
    ...disturbance(usage),
  };
}

function result(merges, downloads) {
  const of = (runs, column) => runs.map((one) => one[column]);
  return {
    ...{
      row: 10,
      title: 'results merged and downloaded',
      runs: [...merges, ...downloads].map(wide),
    },
    verdicts: [
      atLeast('merge, to cp', of(merges, 'to cp'), { unit: 'x', must: 0.4 }),
      atLeast('merge, to cp and sync', of(merges, 'to cp and sync'), { unit: 'x', must: 0.4 }),
      atMost('growth', of(merges, 'growth, MB'), { unit: ' MB', must: 60, digits: 0 }),
      atLeast('download, to a plain stream', of(downloads, 'to plain'), { unit: 'x', must: 0.8 }),
    ],
  };
}

/** Both kinds of runs in one table. */
function wide(run) {
  return { ...EMPTY, ...run };
}

const EMPTY = Object.fromEntries(
  [
    ...['MB/s', 'cp, MB/s', 'to cp', 'to cp and sync', 'CPU s/GB', 'growth, MB'],
    ...['API, MB/s', 'plain, MB/s', 'to plain', 'API, CPU s/GB', 'plain, CPU s/GB'],
    ...['API, peak MB', 'load1', 'others, cores'],
  ].map((column) => [column, '']),
);

async function nodeJson(script, ...args) {
  const { stdout } = await run(process.execPath, [path.join(MERGE, script), ...args.map(String)]);
  return JSON.parse(stdout);
}

module.exports = { merge };
