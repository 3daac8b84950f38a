'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { freePort } = require('../support/free-port');

const PROGRAM = path.resolve(__dirname, '..', '..', 'cli', 'nightshift.js');
const START_MS = 180_000;
const CONFIG = {
  api: {},
  limits: { max_line_bytes: '64KiB', max_requests: 10 },
  batch: { cancel_grace: '1s' },
  log: { level: 'warn' },
};

/** A whole stack in a directory of its own, as `nightshift dev` starts it. */
async function startStack({ config: settings = CONFIG, env = {} } = {}) {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-fuzz-'));
  // Postgres runs as another user where we are root.
  fs.chmodSync(dataDir, 0o711);
  const config = `${dataDir}.yaml`;
  fs.writeFileSync(config, JSON.stringify(settings));
  const args = [
    'dev',
    '--data-dir',
    dataDir,
    '--config',
    config,
    '--port',
    String(await freePort()),
  ];
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr.on('data', (chunk) => (said = (said + chunk).slice(-20_000)));
  const baseUrl = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready:\n${said}`)), START_MS);
    let out = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
      const ready = /nightshift ready api=(\S+)\/v1/.exec(out);
      if (ready === null) return;
      clearTimeout(timer);
      resolve(ready[1]);
    });
    child.once('exit', () => reject(new Error(`ended early:\n${said}`)));
  });
  return {
    baseUrl,
    dataDir,
    said: () => said,
    stop: async ({ keep }) => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      if (keep) return;
      fs.rmSync(dataDir, { recursive: true, force: true });
      fs.rmSync(config, { force: true });
    },
  };
}

module.exports = { startStack };
