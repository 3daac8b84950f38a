'use strict';

/** The model server of all rows: `mock/`, built by Go when it is first needed. */
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { startChild } = require('./children');

const SOURCE = path.join(__dirname, 'mock');
const BINARY = path.join(SOURCE, 'bin', 'mock');
const READY_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 2_000;

/**
 * Starts the mock; it answers at once until `reset` says otherwise.
 *
 * @param {{ replyBytes?: number }} [options] length of an answer's body
 */
async function startMock({ replyBytes = 900 } = {}) {
  build();
  const child = await startChild({
    command: BINARY,
    args: ['serve', '--reply-bytes', String(replyBytes)],
    isReady: (line) => line.startsWith('{'),
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  const { port, control } = JSON.parse(child.readyLine);
  const address = `127.0.0.1:${port}`;
  return {
    pid: child.pid,
    address,
    url: `http://${address}`,
    /** Forgets its counts and answers after `latencyMs` from now on; `models` have their own. */
    async reset({ latencyMs = 0, models = {} } = {}) {
      const list = Object.entries(models).map(([name, ms]) => `${name}=${ms}ms`);
      const query = new URLSearchParams({ latency: `${latencyMs}ms`, models: list.join(',') });
      await ask(`http://127.0.0.1:${control}/reset?${query}`, { method: 'POST' });
    },
    /** Counts since the last reset; times are Unix ms. */
    async stats() {
      return (await ask(`http://127.0.0.1:${control}/stats`)).json();
    },
    /** Whether so many requests were answered since the last reset. */
    async hasAnswered(requests) {
      return (await this.stats()).answered >= requests;
    },
    /** Requests per second that a raw client gets now: the most that anything could. */
    ceiling: (load) => rawLoad(address, load),
    stop: () => child.stop(STOP_TIMEOUT_MS),
  };
}

async function ask(url, init) {
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`mock: ${response.status} ${await response.text()}`);
  return response;
}

function rawLoad(address, { connections, bodyBytes = 279, seconds = 2 }) {
  return measure('load', { address, connections, seconds, 'body-bytes': bodyBytes }).perSec;
}

/** Runs one of the clients of `mock/` to its end, with these flags. @returns the JSON that it prints */
function measure(client, flags) {
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const done = spawnSync(BINARY, [client, ...args], { encoding: 'utf8', timeout: 60_000 });
  if (done.status !== 0) throw new Error(`mock ${client}: ${done.stderr || done.error?.message}`);
  return JSON.parse(done.stdout);
}

/** Starts another server of `mock/`. @returns {Promise<{ pid: number, address: string, stop(): Promise<void> }>} */
async function startServer(command, args) {
  build();
  const child = await startChild({
    command: BINARY,
    args: [command, ...args],
    isReady: (line) => line.startsWith('{'),
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  const address = `127.0.0.1:${JSON.parse(child.readyLine).port}`;
  return { pid: child.pid, address, stop: () => child.stop(STOP_TIMEOUT_MS) };
}

function build() {
  const sources = fs.readdirSync(SOURCE).filter((name) => /\.go$|^go\.mod$/.test(name));
  const newest = Math.max(...sources.map((name) => fs.statSync(path.join(SOURCE, name)).mtimeMs));
  if (fs.existsSync(BINARY) && fs.statSync(BINARY).mtimeMs >= newest) return;
  process.stderr.write('bench: building the mock model server ...\n');
  const done = spawnSync('go', ['build', '-o', BINARY, '.'], {
    cwd: SOURCE,
    stdio: ['ignore', 2, 2],
  });
  if (done.error) throw new Error('the mock model server needs Go on the PATH to be built');
  if (done.status !== 0) throw new Error('the mock model server could not be built');
}

module.exports = { measure, startMock, startServer };
