#!/usr/bin/env node
'use strict';

/** Runs the rows of docs/benchmarks.md that are measured here: `node bench/run.js --help`. */
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { endChildren } = require('./children');
const { machineFacts } = require('./machine');
const { printResult, table, writeJson } = require('./report');

const ROWS = {
  1: () => require('./rows/wall-time').wallTime,
  5: () => require('./rows/memory').memory,
  6: () => require('./rows/first-request').firstRequest,
};

const HELP = `Usage: node bench/run.js [options]

Measures Nightshift against the rows of docs/benchmarks.md. Needs Linux, and Go for the first run.

  --rows <list>     rows to run, comma separated (default: ${Object.keys(ROWS).join(',')})
  --quick           smaller inputs, one run each
  --repeat <n>      runs of each figure, whose median counts (default: 3; with --quick 1)
  --product <dir>   the checkout to measure (default: this one)
  --scratch <dir>   folder for input files and data directories (default: <tmp>/nightshift-bench)
  --json <file>     where to write all results (default: <scratch>/results.json)
  --profile <dir>   keep a CPU profile of every Node process of the product
  --help            this text
`;

async function main() {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string', default: Object.keys(ROWS).join(',') },
      quick: { type: 'boolean', default: false },
      repeat: { type: 'string' },
      product: { type: 'string', default: path.resolve(__dirname, '..') },
      scratch: { type: 'string', default: path.join(os.tmpdir(), 'nightshift-bench') },
      json: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return process.stdout.write(HELP);
  const bench = benchOf(values);
  const rows = values.rows.split(',').map((row) => ROWS[row.trim()] ?? fail(`no row ${row}`));
  const machine = machineFacts(bench.root);
  process.stdout.write(`${table([machine])}\n`);
  const results = [];
  for (const row of rows) {
    const result = await row()(bench);
    printResult(result);
    results.push(result);
    writeJson(values.json ?? path.join(bench.scratch, 'results.json'), { machine, results });
  }
}

function benchOf({ quick, repeat, product, scratch, profile }) {
  fs.mkdirSync(scratch, { recursive: true });
  // As root, the database in here belongs to another user, who must be able to pass.
  fs.chmodSync(scratch, 0o711);
  const times = repeat === undefined ? (quick ? 1 : 3) : Number(repeat);
  if (!Number.isInteger(times) || times < 1) fail(`expected --repeat of 1 or more, got ${repeat}`);
  if (profile !== undefined) fs.mkdirSync(profile, { recursive: true });
  return {
    quick,
    repeat: times,
    root: path.resolve(product),
    scratch: path.resolve(scratch),
    profileDir: profile === undefined ? undefined : path.resolve(profile),
    note: (message) => process.stderr.write(`bench: ${message}\n`),
  };
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
