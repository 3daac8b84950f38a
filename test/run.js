'use strict';

/**
 * `npm test`: prepares the clone, then runs every tier in order, each in a Jest of its own, so that
 * the tiers with real servers have the machine to themselves and one that dies cannot hide the
 * others. The last line says `N passed, N failed` (and `, N skipped` where there are any) over all
 * tiers; the exit code is 0 only when nothing failed. Arguments go to one single Jest instead:
 * `npm test -- test/core`, `npm test -- --testNamePattern seal`.
 */
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { ensureBuilt, ensureInstalled } = require('../cli/prepare.js');

const ROOT = path.resolve(__dirname, '..');
const SERVER_TIERS = ['replay', 'e2e', 'faults'];
/** Two stacks beside each other: most of the time of these tests is waiting. */
const SIDE_BY_SIDE = ['e2e'];
const TIERS = [
  {
    name: 'core and rooms',
    args: [
      '--testPathIgnorePatterns=/node_modules/',
      `--testPathIgnorePatterns=<rootDir>/test/(${SERVER_TIERS.join('|')})/`,
    ],
  },
  ...SERVER_TIERS.map((name) => ({
    name,
    args: [...(SIDE_BY_SIDE.includes(name) ? [] : ['--runInBand']), `test/${name}/`],
  })),
];
const TIER_LIMIT_MS = 40 * 60_000;
/** Stopping the servers of a run takes some seconds; a process that stays longer has a leak. */
const END_LIMIT_MS = 60_000;

async function main(args) {
  ensureInstalled();
  ensureBuilt();
  if (args.length > 0) return runJest('selection', args);
  say(`tiers: ${TIERS.map(({ name }) => name).join(', ')}; one alone: npm test -- test/e2e`);
  await findTemporal();
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { name, args: tierArgs } of TIERS) {
    const counts = await runJest(name, ['--passWithNoTests', ...tierArgs]);
    say(`${name}: ${sentence(counts)}`);
    for (const key of Object.keys(sum)) sum[key] += counts[key];
  }
  return sum;
}

/** Where no Temporal server is at hand one is fetched or built now, where its progress is seen. */
async function findTemporal() {
  const { findServer } = require('../dist/embedded/temporal/find-server.js');
  await findServer({ env: process.env, say }).catch((error) => say(error.message));
}

/** Counts of one Jest run; one that ended without telling any counts as a failed test. */
async function runJest(name, args) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-counts-'));
  const file = path.join(folder, 'counts.json');
  // Last, for Jest takes the words after a list's option for more of the list.
  const reporters = [
    '--reporters=default',
    `--reporters=${path.join(__dirname, 'support/reporter.js')}`,
  ];
  const jest = spawn(process.execPath, [require.resolve('jest/bin/jest'), ...args, ...reporters], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, NIGHTSHIFT_TEST_COUNTS: file },
  });
  const outcome = await endOf(jest, file);
  const counts = readCounts(file);
  fs.rmSync(folder, { recursive: true, force: true });
  if (outcome.code === 0 && counts) return counts;
  const failed = counts?.failed ?? 0;
  if (failed === 0) say(`${name}: ${outcome.words}`);
  return { passed: 0, skipped: 0, ...counts, failed: Math.max(failed, 1) };
}

/** Waits for Jest to end, and ends it when it exceeds its time or stays after its last test. */
function endOf(jest, file) {
  return new Promise((resolve) => {
    const startedAt = Date.now();
    let words;
    const watch = setInterval(() => {
      const countedAt = fs.existsSync(file) ? fs.statSync(file).mtimeMs : Infinity;
      if (Date.now() - startedAt > TIER_LIMIT_MS) words = `not done in ${TIER_LIMIT_MS} ms`;
      if (Date.now() - countedAt > END_LIMIT_MS) words = 'a test left something open: Jest stayed';
      if (words) jest.kill('SIGKILL');
    }, 500);
    const forward = (signal) => jest.kill(signal);
    process.on('SIGINT', forward).on('SIGTERM', forward);
    jest.on('close', (code, signal) => {
      clearInterval(watch);
      process.off('SIGINT', forward).off('SIGTERM', forward);
      resolve({ code, words: words ?? `Jest ended with ${signal ?? `code ${code}`}` });
    });
  });
}

function readCounts(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

function sentence({ passed, failed, skipped }) {
  const counts = `${passed} passed, ${failed} failed`;
  return skipped > 0 ? `${counts}, ${skipped} skipped` : counts;
}

function say(text) {
  process.stderr.write(`\n${text}\n`);
}

main(process.argv.slice(2)).then(
  (counts) => {
    process.exitCode = counts.failed > 0 ? 1 : 0;
    console.log(sentence(counts));
  },
  (error) => {
    process.exitCode = 1;
    console.error(error.message);
    console.log('0 passed, 1 failed');
  },
);
