'use strict';

/** Row 4: ingestion of a file beside `readline` and `JSON.parse`, which check nothing. They take turns. */
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { calmRuns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { inputFile, LARGE_BYTES, SMALL_BYTES } = require('../input-files');
const { watch } = require('../process-stats');
const { atLeast } = require('../verdicts');

const run = promisify(execFile);
const SCRIPTS = path.join(__dirname, '..', 'scan');
const FILE_BYTES = 204_800_000;
/** Pairs of one run, whose sums are compared. */
const TURNS = 3;
const SHAPES = [
  { what: 'lines of 4 KB', lineBytes: LARGE_BYTES, bounds: { must: 8, aim: 14 } },
  { what: 'lines of 279 B', lineBytes: SMALL_BYTES, bounds: null },
];

/** @returns {Promise<import('../report').Result>} */
async function scan(bench) {
  const runs = [];
  for (const { what, lineBytes } of SHAPES) {
    const lines = Math.floor(FILE_BYTES / lineBytes);
    const file = await inputFile(bench.scratch, { lines, lineBytes });
    const found = await calmRuns(bench, () => inTurn(bench, { file, lines }));
    runs.push(...found.map((one) => ({ what, ...one })));
  }
  return { row: 4, title: 'ingestion of 200 MB', verdicts: verdicts(runs), runs };
}

/** Both programs in turns, each time in a process of its own. */
async function inTurn(bench, { file, lines }) {
  const observation = watch({ roots: [], memoryOf: process.pid });
  const found = { own: [], peer: [] };
  for (let turn = 0; turn < (bench.quick ? 1 : TURNS); turn++) {
    found.own.push(await ingest(bench, file));
    found.peer.push(await nodeJson('read-lines.js', file));
  }
  for (const one of [...found.own, ...found.peer]) {
    if (one.lines !== lines) throw new Error(`read ${one.lines} of ${lines} lines`);
  }
  const total = (who, name) => found[who].reduce((sum, one) => sum + one[name], 0);
  const bytes = fs.statSync(file).size * found.own.length;
  return {
    'MB/s': rounded((bytes * 1e-6) / total('own', 'seconds')),
    'readline, MB/s': rounded((bytes * 1e-6) / total('peer', 'seconds')),
    'to readline': rounded(total('peer', 'seconds') / total('own', 'seconds'), 2),
    'CPU s/GB': rounded((total('own', 'cpuSec') / bytes) * 1e9, 2),
    'readline, CPU s/GB': rounded((total('peer', 'cpuSec') / bytes) * 1e9, 2),
    'growth, MB': rounded(Math.max(...found.own.map(({ peakMb, idleMb }) => peakMb - idleMb))),
    ...disturbance(observation.end()),
  };
}

/** The store is a new one, so that no plan exists yet. */
async function ingest({ root, scratch }, file) {
  const folder = fs.mkdtempSync(path.join(scratch, 'scan-'));
  try {
    return await nodeJson('ingest.js', root, file, folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function verdicts(runs) {
  return SHAPES.flatMap(({ what, bounds }) => {
    if (bounds === null) return [];
    const from = runs.filter((one) => one.what === what);
    const values = from.map((one) => one['to readline']);
    return [{ ...atLeast(`${what}, to readline`, values, { unit: 'x', ...bounds }), from }];
  });
}

async function nodeJson(script, ...args) {
  const { stdout } = await run(process.execPath, [path.join(SCRIPTS, script), ...args.map(String)]);
  return JSON.parse(stdout);
}

module.exports = { scan };
