'use strict';

/** A gateway in front of audio workers, in a process of its own, as `nightshift gateway` starts it. */
const fs = require('node:fs');
const path = require('node:path');
const { freePort } = require('../../test/support/free-port');
const { waitFor } = require('../api-client');
const { startChild } = require('../children');
const { environment } = require('../product');

const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 10_000;
/** What a worker shows to send lines of batches. */
const WORKER_TOKEN = 'the-token-of-all-workers';

/**
 * Starts a gateway and waits until all audio workers are ready.
 *
 * @param {{ root: string, scratch: string, profileDir?: string }} bench
 * @param {{ addresses: string[], audio?: object, settings?: object }} options addresses of audio workers; further
 *   members of `gateway.audio` and of `gateway`
 */
async function startAudioGateway(
  { root, scratch, profileDir },
  { addresses, audio = {}, settings = {} },
) {
  const [port, observabilityPort] = [await freePort(), await freePort()];
  const folder = fs.mkdtempSync(path.join(scratch, 'gateway-'));
  const [config, token] = [path.join(folder, 'gateway.json'), path.join(folder, 'token')];
  fs.writeFileSync(token, WORKER_TOKEN, { mode: 0o600 });
  const workers = addresses.map((address) => ({ address }));
  const spool = { dir: path.join(folder, 'spool'), ...audio.spool };
  const gateway = {
    ...{ port, observability_port: observabilityPort, worker_token_file: token },
    ...settings,
    audio: { workers, ...audio, spool },
  };
  fs.writeFileSync(config, JSON.stringify({ gateway }));
  const child = await startChild({
    command: process.execPath,
    args: [path.join(root, 'cli', 'nightshift.js'), 'gateway', '--config', config],
    env: environment(profileDir),
    isReady: (line) => line.includes('gateway ready'),
    readyOn: 'stderr',
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  const observability = `http://127.0.0.1:${observabilityPort}`;
  /** The sum of all series of a metric whose labels contain `labels`. */
  const metric = async (name, labels = '') => {
    const page = await (await fetch(`${observability}/metrics`)).text();
    return sumOf(page, name, labels);
  };
  const areReady = async () =>
    (await metric('audio_worker_ready')) === addresses.length ? true : null;
  await waitFor(areReady, { timeoutMs: READY_TIMEOUT_MS, what: 'ready audio workers' });
  return {
    pid: child.pid,
    address: `127.0.0.1:${port}`,
    metric,
    async stop() {
      await child.stop(STOP_TIMEOUT_MS);
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

function sumOf(page, name, labels) {
  let sum = 0;
  for (const line of page.split('\n')) {
    const [series, value] = line.split(/ (?=[^ ]*$)/);
    const isMeant = series === name || series.startsWith(`${name}{`);
    if (isMeant && series.includes(labels)) sum += Number(value);
  }
  return sum;
}

module.exports = { startAudioGateway, WORKER_TOKEN };
