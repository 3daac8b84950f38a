'use strict';

/**
 * Memory of a gateway: idle, with requests in flight and waiting, and after they have ended; and the processor time of
 * each request. No part of `npm test`. It takes a minute, and needs a quiet machine and `npm run build`.
 *
 *     node test/manual/gateway-memory.js
 */
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');
const { freePort } = require('../support/free-port');

const IN_FLIGHT = 500;
const WAITING = 5_000;
const BODY_BYTES = 4_096;
const RATE_REQUESTS = 20_000;
const RATE_AT_ONCE = 64;
/** Time for garbage collection and for the kernel to hand over sockets. */
const SETTLE_MS = 3_000;
const ANSWER = JSON.stringify({ usage: { prompt_tokens: 9, completion_tokens: 9 } });
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: '' }] });
const PADDED = BODY.replace('""', JSON.stringify('x'.repeat(BODY_BYTES - BODY.length)));

async function main() {
  const backend = await startBackend();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-gateway-memory-'));
  const gateway = await startGateway(backend.url, folder);
  try {
    await report('idle', gateway);
    backend.isHolding = true;
    const agent = new http.Agent({ maxSockets: Infinity });
    const open = Array.from({ length: IN_FLIGHT + WAITING }, () => send(gateway.url, agent));
    while (backend.held.length < IN_FLIGHT) await delay(50);
    await report(`${IN_FLIGHT} in flight, ${WAITING} waiting, ${BODY_BYTES} bytes each`, gateway);
    backend.release();
    await Promise.all(open);
    agent.destroy();
    await report('after they have ended', gateway);
    await reportRate(gateway);
  } finally {
    gateway.child.kill();
    backend.server.close();
    backend.server.closeAllConnections();
    fs.rmSync(folder, { recursive: true });
  }
}

/** A model server that answers at once, or holds requests until `release`. */
async function startBackend() {
  const backend = { isHolding: false, held: [] };
  const answer = (response) => {
    response.setHeader('content-type', 'application/json');
    response.end(ANSWER);
  };
  backend.release = () => {
    backend.isHolding = false;
    for (const response of backend.held.splice(0)) answer(response);
  };
  backend.server = http.createServer((request, response) => {
    request.resume();
    if (backend.isHolding && request.method === 'POST') backend.held.push(response);
    else request.once('end', () => answer(response));
  });
  await new Promise((resolve) => backend.server.listen(0, '127.0.0.1', resolve));
  backend.url = `http://127.0.0.1:${backend.server.address().port}`;
  return backend;
}

async function startGateway(backendUrl, folder) {
  const bound = { watermark_per_backend: IN_FLIGHT, lower_bound_per_backend: IN_FLIGHT };
  const capacity = IN_FLIGHT + WAITING;
  const gateway = {
    port: await freePort(),
    observability_port: await freePort(),
    pools: { main: { models: ['*'], backends: [{ url: backendUrl }] } },
    fair_request_queue: { total_capacity: capacity, flow_capacity: capacity, queue_ttl: '10m' },
    request_queue_controller: { ...bound, upper_bound_per_backend: IN_FLIGHT },
  };
  const config = path.join(folder, 'config.json');
  fs.writeFileSync(config, JSON.stringify({ gateway, log: { level: 'error' } }));
  const program = path.join(__dirname, '..', '..', 'dist', 'cli', 'main.js');
  // As in the image.
  const env = { ...process.env, MALLOC_ARENA_MAX: '1' };
  const args = ['--max-semi-space-size=8', program, 'gateway', '--config', config];
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  const ready = `http://127.0.0.1:${gateway.observability_port}/ready`;
  const isReady = () =>
    fetch(ready).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) await delay(50);
  return { child, url: `http://127.0.0.1:${gateway.port}/v1/chat/completions` };
}

function send(url, agent) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': PADDED.length };
    const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
      response.resume().once('end', resolve);
    });
    request.once('error', reject).end(PADDED);
  });
}

async function report(what, { child }) {
  await delay(SETTLE_MS);
  const status = fs.readFileSync(`/proc/${child.pid}/status`, 'utf8');
  const [, kilobytes] = /^VmRSS:\s*(\d+)/m.exec(status);
  console.log(`${what}: ${Math.round(Number(kilobytes) / 1_000)} MB`);
}

async function reportRate({ url, child }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: RATE_AT_ONCE });
  let left = RATE_REQUESTS;
  const [startedMs, before] = [performance.now(), cpuMs(child.pid)];
  const loop = async () => {
    while (left-- > 0) await send(url, agent);
  };
  await Promise.all(Array.from({ length: RATE_AT_ONCE }, loop));
  const [tookMs, usedMs] = [performance.now() - startedMs, cpuMs(child.pid) - before];
  agent.destroy();
  const rate = Math.round((RATE_REQUESTS / tookMs) * 1_000);
  console.log(
    `${rate} requests/s, ${((usedMs / RATE_REQUESTS) * 1_000).toFixed(0)} µs of CPU each`,
  );
}

/** Processor time of a process so far. Linux counts it in hundredths of a second. */
function cpuMs(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
