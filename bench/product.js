'use strict';

/** Nightshift as a user starts it: `nightshift dev` in a fresh data directory. */
const fs = require('node:fs');
const path = require('node:path');
const { freePort } = require('../test/support/free-port');
const { startChild } = require('./children');

const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
const START_ATTEMPTS = 3;

/**
 * Starts a whole stack whose requests go to `gatewayUrl`.
 *
 * @param {{ root: string, scratch: string, gatewayUrl: string, store?: string, settings?: object, profileDir?: string }} options
 *   `root` is the checkout to measure, `store` is filesystem or s3, `settings` are sections of its
 *   configuration, `profileDir` gets a V8 CPU profile of the worker when it ends.
 */
async function startProduct(options) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(options);
    } catch (error) {
      // Two stacks that start at once may choose the same free port for a part of theirs.
      if (attempt === START_ATTEMPTS) throw error;
      process.stderr.write(`bench: a stack did not start, trying again: ${error.message}\n`);
    }
  }
}

async function startOnce({ root, scratch, gatewayUrl, store, settings = {}, profileDir }) {
  const dataDir = fs.mkdtempSync(path.join(scratch, 'data-'));
  // As root, Postgres runs as another user and must be able to pass.
  fs.chmodSync(dataDir, 0o711);
  const config = path.join(dataDir, 'bench.json');
  fs.writeFileSync(config, JSON.stringify(configOf(gatewayUrl, settings)));
  const port = await freePort();
  const args = ['dev', '--data-dir', dataDir, '--port', port, '--config', config, '--no-simulator'];
  if (store === 's3') args.push('--store', store);
  const child = await startChild({
    command: process.execPath,
    args: [path.join(root, 'cli', 'nightshift.js'), ...args.map(String)],
    env: environment(profileDir),
    isReady: (line) => line.startsWith('nightshift ready '),
    readyTimeoutMs: READY_TIMEOUT_MS,
  }).catch((error) => {
    fs.rmSync(dataDir, { recursive: true, force: true });
    throw error;
  });
  const readParts = () =>
    JSON.parse(fs.readFileSync(path.join(dataDir, 'run', 'processes.json'), 'utf8'));
  const parts = readParts();
  const resolved = JSON.parse(fs.readFileSync(path.join(dataDir, 'run', 'config.json'), 'utf8'));
  return {
    api: /\bapi=(\S+)/.exec(child.readyLine)[1],
    dataDir,
    postgresUrl: resolved.postgres.url,
    temporalAddress: resolved.temporal.address,
    temporalNamespace: resolved.temporal.namespace,
    workerPid: parts.find(({ name }) => name === 'worker').pid,
    /** Of a part as it runs now: a killed one comes back as another process. */
    pidOf: (part) => readParts().find(({ name }) => name === part).pid,
    /** All processes that belong to the stack, for accounting of processor time. */
    pids: [child.pid, ...parts.map(({ pid }) => pid)],
    async stop() {
      await child.stop(STOP_TIMEOUT_MS);
      fs.rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function configOf(gatewayUrl, settings) {
  const gateway = { url: gatewayUrl, ...settings.global_inference_gateway };
  return { log: { level: 'warn' }, ...settings, global_inference_gateway: gateway };
}

/** With a folder for profiles, the environment in which workers and gateways are profiled. */
function environment(profileDir) {
  if (profileDir === undefined) return process.env;
  const preload = path.join(__dirname, 'profile-worker.js');
  return { ...process.env, NODE_OPTIONS: `--require ${preload}`, BENCH_PROFILE_DIR: profileDir };
}

module.exports = { environment, startProduct };
