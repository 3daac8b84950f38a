#!/usr/bin/env node
'use strict';

/** Runs the rows of docs/benchmarks.md that are measured here: `node bench/run.js --help`. */
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { endChildren } = require('./children');
const { machineFacts } = require('./machine');
const { besides } = require('./peers/baselines');
const { writePlot } = require('./plots/plot');
const { printResult, settled, table, writeJson } = require('./report');

const ROWS = {
  1: () => require('./rows/wall-time').wallTime,
  2: () => require('./rows/rate').rateBesideAll,
  3: () => require('./rows/rate').rateBesideLoop,
  4: () => require('./rows/scan').scan,
  5: () => require('./rows/memory').memory,
  6: () => require('./rows/first-request').firstRequest,
  7: () => require('./rows/cancel').cancel,
  10: () => require('./rows/merge').merge,
  11: () => require('./rows/many-batches').manyBatches,
  12: () => require('./rows/two-models').twoModels,
  13: () => require('./rows/waiting-batches').waitingBatches,
  14: () => require('./rows/stores').stores,
  F1: () => require('./rows/queue').queueRate,
  F2: () => require('./rows/queue').pathRate,
  F3: () => require('./rows/queue').callLatency,
  F4: () => require('./rows/queue').queueMemory,
  F5: () => require('./rows/proxy').addedLatency,
  F6: () => require('./rows/proxy').eventDelay,
  F7: () => require('./rows/users').usersBesideBatch,
  F8: () => require('./rows/users').coldStart,
  F9: () => require('./rows/shares').shares,
  F10: () => require('./rows/prefix-cache').prefixCache,
  'F10-tenants': () => require('./rows/prefix-tenants').prefixTenants,
  F11: () => require('./rows/gateway-batch').throughGateway,
  F12: () => require('./rows/gateway-kill').gatewayKill,
  D1: () => require('./rows/delegation').delegatedBatch,
  D3: () => require('./rows/delegation-memory').delegatedMemory,
  D5: () => require('./rows/delegation-beside').watchedJobs,
  D6: () => require('./rows/delegation-beside').localBeside,
  D7: () => require('./rows/delegation').delegatedCancel,
  A1: () => require('./rows/audio-added').addedToCalls,
  A2: () => require('./rows/audio-cancel').cancelled,
  A3: () => require('./rows/audio-batching').batching,
  A4: () => require('./rows/audio-beside').usersBesideLines,
  A5: () => require('./rows/audio-aging').agedRequests,
  A6: () => require('./rows/audio-uploads').uploadsAtOnce,
  A7: () => require('./rows/audio-sessions').liveSessions,
  A8: () => require('./rows/audio-speech').speechAndUpload,
  growth: () => require('./rows/growth').growth,
  many: () => require('./rows/many-small').manySmall,
  stored: () => require('./rows/stored').storedBatches,
  processes: () => require('./rows/processes').processes,
  'processes-alone': () => require('./rows/processes').processesAlone,
  faults: () => require('./rows/faults').faults,
  sizing: () => require('./rows/sizing').sizing,
};

const HELP = `Usage: node bench/run.js [options]

Measures Nightshift against the rows of docs/benchmarks.md. Needs Linux, and Go for the first run.

  --rows <list>     rows to run, comma separated (default: ${Object.keys(ROWS).join(',')})
  --quick           smaller inputs, one run each
  --repeat <n>      runs of each figure, whose median counts (default: 3; with --quick 1)
                    of the faults and F12, all of which count (default: 20; with --quick 2)
  --calm <cores>    processor that others may use in a run, else it is repeated (default: 0.15)
  --patience <s>    how long to wait for calm before each run (default: 60; with --quick 10)
  --retries <n>     further runs for those that were disturbed (default: twice --repeat); if these do not
                    suffice, what they decide is "disturbed"
  --plots <dir>     where to draw the results as SVG, a file for each row that has a plot
  --batch-gateway <dir>
                    rows 1 and 2: a folder whose bin/ has apiserver and batch-processor of the Go
                    batch-gateway; needs redis-server and root (default: $BATCH_GATEWAY_DIR, else without)
  --beside <names>  rows 1 and 2: the baselines to run, separated by ; (default: all). With few, each run is close in time
                    to those it is compared with, which matters on a machine whose speed changes
  --store <kind>    filesystem or s3; row 14 measures both (default: filesystem)
  --product <dir>   the checkout to measure (default: this one)
  --scratch <dir>   folder for input files and data directories (default: a new one in the
                    temporary folder; name one to keep input files for the next run)
  --json <file>     where to write all results (default: <scratch>/results.json)
  --profile <dir>   keep a CPU profile of each worker, or gateway of A1 to A8: see top-functions.js
  --help            this text
`;

async function main() {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string', default: Object.keys(ROWS).join(',') },
      quick: { type: 'boolean', default: false },
      repeat: { type: 'string' },
      calm: { type: 'string', default: '0.15' },
      patience: { type: 'string' },
      retries: { type: 'string' },
      product: { type: 'string', default: path.resolve(__dirname, '..') },
      store: { type: 'string', default: 'filesystem' },
      scratch: { type: 'string' },
      json: { type: 'string' },
      plots: { type: 'string' },
      beside: { type: 'string' },
      'batch-gateway': { type: 'string', default: process.env.BATCH_GATEWAY_DIR },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return process.stdout.write(HELP);
  const rows = values.rows.split(',').map((row) => ROWS[row.trim()] ?? fail(`no row ${row}`));
  const bench = benchOf(values);
  // A wrong name is said now, not when a row comes to it.
  besides(bench);
  bench.note(`files are in ${bench.scratch}`);
  const machine = machineFacts(bench.root);
  process.stdout.write(`${table([machine])}\n`);
  const results = [];
  for (const row of rows) {
    const result = settled(await row()(bench), bench);
    printResult(result);
    if (values.plots !== undefined) writePlot(values.plots, result);
    results.push(result);
    writeJson(values.json ?? path.join(bench.scratch, 'results.json'), { machine, results });
  }
}

function benchOf(values) {
  const { quick, product, profile, store } = values;
  const scratch = scratchFolder(values.scratch);
  // As root, the database in here belongs to another user, who must be able to pass.
  fs.chmodSync(scratch, 0o711);
  const repeat = number('repeat', values.repeat ?? (quick ? 1 : 3), 1);
  const patienceSec = number('patience', values.patience ?? (quick ? 10 : 60), 0);
  if (profile !== undefined) fs.mkdirSync(profile, { recursive: true });
  return {
    quick,
    store,
    repeat,
    faultRuns: number('repeat', values.repeat ?? (quick ? 2 : 20), 1),
    calmCores: number('calm', values.calm, 0),
    patienceMs: patienceSec * 1000,
    retries: number('retries', values.retries ?? 2 * repeat, 0),
    root: path.resolve(product),
    scratch,
    beside: values.beside,
    batchGatewayDir: values['batch-gateway'] && path.resolve(values['batch-gateway']),
    profileDir: profile === undefined ? undefined : path.resolve(profile),
    note: (message) => process.stderr.write(`bench: ${message}\n`),
  };
}

/** Another user may have made a folder of a fixed name in the temporary one, with links in it. */
function scratchFolder(named) {
  if (named === undefined) return fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-bench-'));
  fs.mkdirSync(named, { recursive: true });
  return path.resolve(named);
}

function number(name, text, min) {
  const value = Number(text);
  return value >= min ? value : fail(`expected --${name} of ${min} or more, got ${text}`);
}

function fail(message) {
  throw new Error(message);
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    endChildren();
    process.exit(130);
  });
}
main().catch((error) => {
  process.stderr.write(`bench: ${error.stack}\n`);
  endChildren();
  process.exitCode = 1;
});
