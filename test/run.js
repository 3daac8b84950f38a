'use strict';

/**
 * `npm test`: prepares the clone, then runs every tier in order, each in a Jest of its own. The
 * tiers that start real servers have the machine to themselves, and a tier that crashes cannot hide
 * the results of the others. The last line says `N passed, N failed` (and `, N skipped` if there are
 * any) over all tiers; the exit code is 0 only if nothing failed. Arguments replace the tiers and go
 * to one Jest: `npm test -- test/core`, `npm test -- --testNamePattern seal`.
 *
 * `--store s3` and `--processes 2` change the stacks that the tests start. Without a file or another
 * argument, all tiers with stacks run on them (docs/testing.md#variants-of-the-stack).
 */
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { ensureBuilt, ensureInstalled } = require('../cli/prepare.js');
const { HELM, PROMTOOL } = require('./support/go-programs.js');

const ROOT = path.resolve(__dirname, '..');
/**
 * Tiers that start real servers, in order: Temporal alone, then whole stacks. The files in `test/faults/timed`
 * check measured times, so only two of them run at once. Tests in the other subfolders of `test/faults` start
 * nothing.
 */
const SERVER_TIERS = [
  { name: 'workflows', paths: ['test/workflows/', 'test/replay/'] },
  { name: 'e2e', paths: ['test/e2e/'] },
  { name: 'faults', paths: ['test/faults/[^/]+$', 'test/faults/providers/'] },
  { name: 'timed faults', paths: ['test/faults/timed/'], maxWorkers: 2 },
];
/** What `npm test` runs a second time, on the variant that differs most from the usual stack. */
const VARIANT_TIER = {
  name: 'e2e on S3, with two of each process',
  variant: { store: 's3', processes: '2' },
  args: ['test/e2e/batches', 'test/e2e/recovery'],
};
const TIERS = [
  {
    name: 'core and rooms',
    args: SERVER_TIERS.flatMap(({ paths }) => paths).map(
      (path) => `--testPathIgnorePatterns=<rootDir>/${path}`,
    ),
  },
  ...SERVER_TIERS.map(serverTier),
  VARIANT_TIER,
];
/** Tiers whose stacks take part in a variant. */
const STACK_TIERS = SERVER_TIERS.slice(1).map(serverTier);
const TIER_LIMIT_MS = 40 * 60_000;
/** Stopping the servers of a run takes some seconds; a process that runs on after this has a leak. */
const END_LIMIT_MS = 60_000;

function serverTier({ name, paths, maxWorkers }) {
  return { name, args: [...(maxWorkers ? [`--maxWorkers=${maxWorkers}`] : []), ...paths] };
}

async function main(allArgs) {
  const { variant, args } = readVariant(allArgs);
  ensureInstalled();
  ensureBuilt();
  if (args.length > 0) return runJest('selection', { args, variant });
  const tiers = Object.keys(variant).length > 0 ? STACK_TIERS : TIERS;
  say(`tiers: ${tiers.map(({ name }) => name).join(', ')}; one alone: npm test -- test/e2e`);
  const { hasS3Server } = await findPrograms();
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const tier of tiers.filter((one) => hasS3Server || one !== VARIANT_TIER)) {
    const tierArgs = ['--passWithNoTests', ...tier.args];
    const counts = await runJest(tier.name, { args: tierArgs, variant: tier.variant ?? variant });
    say(`${tier.name}: ${sentence(counts)}`);
    for (const key of Object.keys(sum)) sum[key] += counts[key];
  }
  return sum;
}

/** Takes the options of the stacks out of the arguments. The rest is for Jest. */
function readVariant(allArgs) {
  const options = { store: { type: 'string' }, processes: { type: 'string' } };
  const { tokens } = parseArgs({ args: allArgs, options, strict: false, tokens: true });
  const own = tokens.filter(({ kind, name }) => kind === 'option' && name in options);
  const variant = Object.fromEntries(own.map(({ name, value }) => [name, value ?? '']));
  const taken = own.flatMap(({ index, inlineValue }) =>
    inlineValue ? [index] : [index, index + 1],
  );
  return { variant, args: allArgs.filter((_, i) => !taken.includes(i)) };
}

/**
 * Fetches or builds the servers that the machine does not have: here their progress is visible. Says whether
 * there is an S3 server.
 */
async function findPrograms() {
  const { findServer } = require('../dist/embedded/temporal/find-server.js');
  const { findGoProgram } = require('../dist/embedded/binaries/go-program.js');
  const { VERSITYGW } = require('../dist/embedded/binaries/versitygw.js');
  const options = { env: process.env, say };
  await findServer(options).catch((error) => say(error.message));
  const s3Server = await findGoProgram(VERSITYGW, options).catch((error) =>
    say(`${error.message}\nThe tests of the S3 store are skipped if there is no Go.`),
  );
  await findGoProgram(PROMTOOL, options).catch((error) =>
    say(`${error.message}\nThe tests of the alert rules are skipped if there is no Go.`),
  );
  await findGoProgram(HELM, options).catch((error) =>
    say(`${error.message}\nThe tests of the Helm chart are skipped if there is no Go.`),
  );
  return { hasS3Server: s3Server !== undefined };
}

/** Counts of one Jest run. A run that ends without any counts as one failed test. */
async function runJest(name, { args, variant }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-counts-'));
  const file = path.join(folder, 'counts.json');
  // Last: Jest reads the words that follow a list option as more items of the list.
  const reporters = [
    '--reporters=default',
    `--reporters=${path.join(__dirname, 'support/reporter.js')}`,
  ];
  const jest = spawn(process.execPath, [require.resolve('jest/bin/jest'), ...args, ...reporters], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, ...variablesOf(variant), NIGHTSHIFT_TEST_COUNTS: file },
  });
  const outcome = await endOf(jest, file);
  const counts = readCounts(file);
  fs.rmSync(folder, { recursive: true, force: true });
  if (outcome.code === 0 && counts) return counts;
  const failed = counts?.failed ?? 0;
  if (failed === 0) say(`${name}: ${outcome.reason}`);
  return { passed: 0, skipped: 0, ...counts, failed: Math.max(failed, 1) };
}

/** How `test/support/variant.ts` learns of a variant. */
function variablesOf({ store, processes }) {
  return {
    ...(store === undefined ? {} : { NIGHTSHIFT_TEST_STORE: store }),
    ...(processes === undefined ? {} : { NIGHTSHIFT_TEST_PROCESSES: processes }),
  };
}

/** Waits for Jest to end. Kills it when it exceeds its time or does not exit after its last test. */
function endOf(jest, file) {
  return new Promise((resolve) => {
    const startedAt = Date.now();
    let reason;
    const watch = setInterval(() => {
      const countedAt = fs.existsSync(file) ? fs.statSync(file).mtimeMs : Infinity;
      if (Date.now() - startedAt > TIER_LIMIT_MS) reason = `not finished after ${TIER_LIMIT_MS} ms`;
      if (Date.now() - countedAt > END_LIMIT_MS)
        reason = 'Jest did not exit: a test left something open';
      if (reason) jest.kill('SIGKILL');
    }, 500);
    const forward = (signal) => jest.kill(signal);
    process.on('SIGINT', forward).on('SIGTERM', forward);
    jest.on('close', (code, signal) => {
      clearInterval(watch);
      process.off('SIGINT', forward).off('SIGTERM', forward);
      resolve({ code, reason: reason ?? `Jest ended with ${signal ?? `code ${code}`}` });
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
