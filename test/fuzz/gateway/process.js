'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { freePort } = require('../../support/free-port');

const PROGRAM = path.resolve(__dirname, '..', '..', '..', 'dist', 'cli', 'main.js');
const START_MS = 60_000;
const TOKEN = 'a-token-of-all-workers';

/** A gateway in a process of its own in front of these model servers. */
async function startGateway(backends) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-fuzz-'));
  const [port, observability] = [await freePort(), await freePort()];
  const admin = `http://127.0.0.1:${observability}`;
  fs.writeFileSync(path.join(folder, 'token'), TOKEN);
  const gateway = {
    ...{ port, observability_port: observability },
    worker_token_file: path.join(folder, 'token'),
    pools: { main: { models: ['*'], backends: backends.map((url) => ({ url })) } },
    // Failures must not lower the limits, or the run would wait most of the time.
    request_queue_controller: { watermark_per_backend: 4 },
    body_grace: '2s',
  };
  const config = path.join(folder, 'gateway.json');
  fs.writeFileSync(config, JSON.stringify({ log: { level: 'error' }, gateway }));
  const child = spawn(process.execPath, [PROGRAM, 'gateway', '--config', config], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => (said = (said + chunk).slice(-20_000)));
  }
  await untilReady(`${admin}/ready`, () => said);
  return {
    ...{ url: `http://127.0.0.1:${port}`, pid: child.pid, token: TOKEN },
    said: () => said,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    flow: async () => (await fetch(`${admin}/admin/flow`)).json(),
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      if (child.kill('SIGTERM')) await ended;
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilReady(url, said) {
  const untilMs = performance.now() + START_MS;
  for (;;) {
    const { ok } = await fetch(url).catch(() => ({ ok: false }));
    if (ok) return;
    if (performance.now() > untilMs) throw new Error(`the gateway is not ready:\n${said()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

module.exports = { startGateway };
