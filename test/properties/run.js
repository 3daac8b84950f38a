'use strict';

/**
 * `npm run properties -- [--times N] [--seconds S] [--seed S] [FILES…]`: runs the test files that use fast-check, or
 * those of them whose path contains one of FILES, with N times the usual runs of each property. A property ends after
 * S seconds even if runs are left. At the end it says which properties failed, and for each the command that repeats
 * the failure. `--test TITLE` and `--path P` are parts of that command.
 */
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { ensureInstalled } = require('../../cli/prepare.js');

const ROOT = path.resolve(__dirname, '../..');
const JEST_ARGS = [
  require.resolve('jest/bin/jest'),
  `--config=${path.join(__dirname, 'jest.config.js')}`,
];

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      times: { type: 'string', default: '20' },
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      path: { type: 'string' },
      test: { type: 'string' },
    },
  });
  const number = (name) => {
    if (/^-?\d+$/.test(values[name])) return Number(values[name]);
    throw new Error(`--${name}: expected a whole number, got '${values[name]}'`);
  };
  const [times, seconds, seed] = ['times', 'seconds', 'seed'].map(number);
  return { ...values, times, seconds, seed, patterns: positionals };
}

function main() {
  ensureInstalled();
  const run = options();
  const files = propertyFiles().filter(
    (file) => run.patterns.length === 0 || run.patterns.some((part) => file.includes(part)),
  );
  if (files.length === 0) throw new Error('No test file with properties has such a path.');
  console.log(`${files.length} files, seed ${run.seed}, ${run.times} times the usual runs`);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-properties-'));
  const log = path.join(folder, 'log.jsonl');
  try {
    fs.writeFileSync(log, '');
    const code = runTests(files, run, log);
    report(fs.readFileSync(log, 'utf8').split('\n').filter(Boolean).map(JSON.parse), run);
    process.exitCode = code;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/** Test files that use fast-check themselves or import tests that do, relative to the repository. */
function propertyFiles() {
  const users = fs
    .readdirSync(path.join(ROOT, 'test'), { recursive: true })
    .map((name) => path.join(ROOT, 'test', name))
    .filter((name) => name.endsWith('.ts') && usesFastCheck(name));
  const { stdout } = spawnSync(
    process.execPath,
    [...JEST_ARGS, '--listTests', '--findRelatedTests', ...users],
    { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const files = stdout.split('\n').filter(Boolean);
  return files.map((name) => path.relative(ROOT, name)).sort();
}

function usesFastCheck(name) {
  return fs.readFileSync(name, 'utf8').includes("from 'fast-check'");
}

function runTests(files, { times, seconds, seed, path, test }, log) {
  const settings = { times, seed, path, limitMs: seconds * 1000, log };
  const selection = test === undefined ? [] : [`--testNamePattern=${escaped(test)}`];
  const { status } = spawnSync(
    process.execPath,
    [...JEST_ARGS, ...selection, '--runTestsByPath', ...files],
    {
      cwd: ROOT,
      stdio: 'inherit',
      env: { ...process.env, NIGHTSHIFT_PROPERTIES: JSON.stringify(settings) },
    },
  );
  return status ?? 1;
}

function report(properties, run) {
  const runs = properties.reduce((sum, { numRuns }) => sum + numRuns, 0);
  console.log(`\n${properties.length} properties, ${runs} runs, seed ${run.seed}`);
  for (const { file, title, numRuns } of properties.filter((one) => one.interrupted))
    console.log(`out of time after ${numRuns} runs: ${file}: ${title}`);
  for (const failure of properties.filter((one) => one.failed)) {
    console.log(`FAILED after ${failure.numRuns} runs: ${failure.file}: ${failure.title}`);
    console.log(`  ${commandFor(failure, run)}`);
  }
}

function commandFor({ file, title, path }, { seed }) {
  const flags = `--seed ${seed} --path ${path}`;
  return `npm run properties -- ${flags} --test '${title.replaceAll("'", "'\\''")}' ${file}`;
}

function escaped(title) {
  return title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

try {
  main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
