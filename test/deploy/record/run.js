'use strict';

/**
 * `node test/deploy/record/run.js NAME`: starts a whole stack, injects faults, scrapes it every second and
 * replaces test/deploy/recordings/NAME.json. It takes some minutes and wants a quiet machine.
 */
const { spawn } = require('node:child_process');
const path = require('node:path');
const { ensureBuilt, ensureInstalled } = require('../../../cli/prepare.js');

const ROOT = path.resolve(__dirname, '..', '..', '..');
const NAMES = ['away', 'frozen', 'lost', 'load', 'gateway'];

const [name = ''] = process.argv.slice(2);
if (!NAMES.includes(name)) {
  console.error(`usage: node test/deploy/record/run.js ${NAMES.join('|')}`);
  process.exit(2);
}
ensureInstalled();
ensureBuilt();
const file = `test/deploy/record/${name}.ts`;
const args = ['--runInBand', '--testTimeout=600000', `--testMatch=<rootDir>/${file}`];
const jest = spawn(process.execPath, [require.resolve('jest/bin/jest'), ...args], {
  cwd: ROOT,
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => jest.kill(signal));
jest.on('close', (code) => (process.exitCode = code ?? 1));
