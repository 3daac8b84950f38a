'use strict';

/**
 * `npm run attack -- [--batches N] [--seconds S] [--seed S] [--keep]`: attacks a stack of its own as one
 * bad client would, while an innocent one measures its answers, and then runs batches with hostile
 * names. Wants a quiet machine: whatever else runs is counted as delay.
 */
const { fork } = require('node:child_process');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { ensureBuilt, ensureInstalled } = require('../../cli/prepare.js');
const { randomFor } = require('../fuzz/random.js');
const { startStack } = require('../fuzz/stack.js');
const { ATTACKS } = require('./attacks.js');
const { createHostileBatches, untilEnded } = require('./batches.js');
const { createClient } = require('./client.js');
const { processesOf, seriesOf } = require('./processes.js');

const USAGE = `usage: npm run attack -- [--batches N] [--seconds S] [--seed S] [--only TEXT] [--keep]
  --batches  batches with hostile names; 300
  --seconds  how long each attack lasts; 5
  --seed     decides sizes and names; a random one, printed first
  --only     attacks whose name contains this text, and no batches
  --keep     keep the data directory`;
const TENANT_HEADER = 'x-tenant';
const MOST_DELAY_MS = 250;
/** Sixteen files are read at once in a worker, each with a line of 16 MiB that is held twice at most. */
const MOST_GROWTH_MB = 512;
const HEAP_MB = 400;

async function main() {
  const options = flags();
  if (options === null) return console.log(USAGE);
  ensureInstalled();
  ensureBuilt();
  console.log(`seed ${options.seed}`);
  const stack = await startStack({
    config: {
      auth: { mode: 'header', tenant_header: TENANT_HEADER },
      batch: { cancel_grace: '1s' },
      log: { level: 'warn' },
    },
    env: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` },
  });
  const run = await prepare(stack, options);
  try {
    await attackAll(run);
    if (options.only === '') await runBatches(run);
    await judge(run);
  } finally {
    run.bystander.disconnect();
    run.client.close();
    await stack.stop({ keep: options.keep });
  }
  for (const fault of run.faults) console.log(`FAULT ${fault}`);
  console.log(run.faults.length === 0 ? 'nothing wrong' : `${run.faults.length} faults`);
  process.exitCode = run.faults.length === 0 ? 0 : 1;
}

function flags() {
  const { values } = parseArgs({
    options: {
      batches: { type: 'string', default: '300' },
      seconds: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
      only: { type: 'string', default: '' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return null;
  const number = (name) => {
    if (/^\d+$/.test(values[name])) return Number(values[name]);
    throw new Error(`--${name}: expected a whole number, got '${values[name]}'`);
  };
  const [batches, seconds, seed] = ['batches', 'seconds', 'seed'].map(number);
  return { batches, seconds, seed, only: values.only, keep: values.keep };
}

async function prepare(stack, options) {
  const { hostname, port, host } = new URL(stack.baseUrl);
  const client = createClient({ hostname, port, tenantHeader: TENANT_HEADER });
  Object.assign(client, { host, tenantLine: `${TENANT_HEADER}: attacker\r\n` });
  const bystander = fork(path.join(__dirname, 'bystander.js'), [stack.baseUrl, TENANT_HEADER]);
  return {
    ...{ stack, client, bystander, options, faults: [] },
    random: randomFor(options.seed, 0),
    tenantHeader: TENANT_HEADER,
    batches: { wanted: [] },
    before: processesOf(stack.dataDir),
  };
}

async function attackAll(run) {
  const { options, random, client, faults, batches } = run;
  await watched(run, 'nothing at all', () => new Promise((r) => setTimeout(r, 3_000)));
  for (const { name, run: attack } of ATTACKS) {
    if (!name.includes(options.only)) continue;
    const forMs = options.seconds * 1000;
    const found = await watched(run, name, () =>
      attack({ client, random, tenantHeader: TENANT_HEADER, forMs, batches }),
    );
    for (const fault of found) faults.push(`${name}: ${fault}`);
  }
}

/** Does `work` and tells how long the bystander waited meanwhile. */
async function watched(run, name, work) {
  await figuresOf(run.bystander);
  const startedAt = performance.now();
  const result = await work();
  const { answers, failures, maxMs, over100, lastFailure } = await figuresOf(run.bystander);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const grown = growth(run);
  console.log(
    `${name}: ${seconds} s, bystander ${answers} answers, longest ${maxMs.toFixed(0)} ms, ` +
      `${over100} over 100 ms, ${failures} failed; peaks ${grown}`,
  );
  if (maxMs > MOST_DELAY_MS) run.faults.push(`${name}: a bystander waited ${maxMs.toFixed(0)} ms`);
  if (failures > 0) run.faults.push(`${name}: ${failures} failures, the last ${lastFailure}`);
  return result;
}

function figuresOf(bystander) {
  return new Promise((resolve) => {
    bystander.once('message', resolve);
    bystander.send('window');
  });
}

async function runBatches(run) {
  const { client, random, options, batches, faults } = run;
  const { made, refused } = await watched(run, 'hostile batches, created', () =>
    createHostileBatches(client, random, { count: options.batches, wanted: batches.wanted }),
  );
  const { ends, open } = await watched(run, 'hostile batches, running', () =>
    untilEnded(client, made),
  );
  console.log(
    `${made.length} batches: ${JSON.stringify(ends)}; refused: ${JSON.stringify(refused)}`,
  );
  for (const { id, what, status } of open) faults.push(`${id} (${what}) is still ${status}`);
}

async function judge(run) {
  const { stack, before, faults } = run;
  const after = processesOf(stack.dataDir);
  for (const [name, { pid, peakMb }] of Object.entries(after)) {
    if (before[name]?.pid !== pid) faults.push(`${name} ended and was started again`);
    const grown = peakMb - (before[name]?.rssMb ?? 0);
    if (['api', 'worker'].includes(name) && grown > MOST_GROWTH_MB) {
      faults.push(`${name} grew by ${grown.toFixed(0)} MB`);
    }
  }
  const series = await seriesOf(stack.dataDir);
  console.log(`metric series: ${JSON.stringify(series)}`);
  if (faults.length > 0) console.log(stack.said());
}

function growth({ stack, before }) {
  return Object.entries(processesOf(stack.dataDir))
    .filter(([name]) => ['api', 'worker'].includes(name))
    .map(
      ([name, { peakMb }]) =>
        `${name} ${peakMb.toFixed(0)} MB (${before[name].rssMb.toFixed(0)} at first)`,
    )
    .join(', ');
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 2;
});
