'use strict';

/**
 * `npm run faults -- [--rounds N] [--seed S] [--first-round R] [--workers 1|2] [--store filesystem|s3] [--gateway fixed|learnt]`:
 * plays the schedule of faults for as long as you like. The same seed strikes the same batches with the same faults;
 * what meets what is up to the machine.
 */
const { spawn } = require('node:child_process');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { ensureBuilt, ensureInstalled } = require('../../cli/prepare.js');

const USAGE = `usage: npm run faults -- [--rounds N] [--seed S] [--first-round R] [--workers 1|2] [--store s3]
                             [--gateway fixed|learnt]
       npm run faults -- --providers [--rounds N] [--seed S] [--first-round R]
  --rounds       how many; 40
  --seed         decides batches, faults and their moments; a random one, printed first
  --first-round  begin with this one, to play one again; 0
  --workers      2: a second worker beside the stack's own, whose links are struck too; 1
  --store        s3: objects in an S3 server, which is struck too; filesystem
  --gateway      a gateway in front of the model server, which users call too, and which is struck: with a fixed
                 limit of requests in flight, or one that it learns; none
  --providers    delegated models: calls to providers fail, too`;
const ROOT = path.resolve(__dirname, '..', '..');

function main() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '40' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
      'first-round': { type: 'string', default: '0' },
      workers: { type: 'string', default: '1' },
      store: { type: 'string', default: 'filesystem' },
      gateway: { type: 'string' },
      providers: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return console.log(USAGE);
  const { store, gateway, providers, ...numbers } = values;
  if (!['filesystem', 's3'].includes(store)) throw new Error(`--store: filesystem or s3`);
  if (![undefined, 'fixed', 'learnt'].includes(gateway)) {
    throw new Error(`--gateway: fixed or learnt`);
  }
  for (const [name, value] of Object.entries(numbers)) {
    if (!/^\d+$/.test(value)) throw new Error(`--${name}: expected a whole number, got '${value}'`);
  }
  ensureInstalled();
  ensureBuilt();
  console.error(`seed ${values.seed}, ${values.rounds} rounds from ${values['first-round']}`);
  const file = providers
    ? 'test/faults/providers/rounds.test.ts'
    : 'test/faults/timed/schedule.test.ts';
  const args = ['--runInBand', '--testTimeout=600000', file];
  const jest = spawn(process.execPath, [require.resolve('jest/bin/jest'), ...args], {
    cwd: ROOT,
    stdio: 'inherit',
    env: {
      ...process.env,
      NIGHTSHIFT_FAULT_ROUNDS: values.rounds,
      NIGHTSHIFT_FAULT_SEED: values.seed,
      NIGHTSHIFT_FAULT_FIRST_ROUND: values['first-round'],
      NIGHTSHIFT_TEST_PROCESSES: values.workers,
      NIGHTSHIFT_TEST_STORE: store,
      ...(gateway === undefined ? {} : { NIGHTSHIFT_FAULT_GATEWAY: gateway }),
    },
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => jest.kill(signal));
  jest.on('close', (code) => (process.exitCode = code ?? 1));
}

try {
  main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
