'use strict';

/** The proxies that rows F5 and F6 compare, each started in front of one origin. */
const fs = require('node:fs');
const path = require('node:path');
const { freePort } = require('../../test/support/free-port');
const { startChild } = require('../children');
const { startServer } = require('../mock-server');

const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5_000;

/**
 * @typedef {object} Proxy
 * @property {number} pid
 * @property {string} address host and port
 * @property {string} headers further header lines of each request, separated by |
 * @property {() => Promise<void>} stop
 */

/** Proxies by name: each takes the address of the origin and the bench. @type {Record<string, Function>} */
const PROXIES = {
  gateway: (origin, bench) => startGateway(origin, bench),
  'pass-through': (origin, { root }) => startScript('pass-through.js', [url(origin), root]),
  'plain proxy': (origin) => startScript('plain-proxy.js', [url(origin)]),
  '@fastify/http-proxy': (origin) => startScript('fastify-proxy.js', [url(origin)]),
  '@portkey-ai/gateway': startPortkey,
  'Go ReverseProxy': async (origin) => ({
    ...(await startServer('proxy', ['--to', url(origin)])),
    headers: '',
  }),
};

/** Whether the measured checkout has the process that a proxy is. */
function isPresent(name, { root }) {
  return name !== 'gateway' || fs.existsSync(path.join(root, 'dist', 'gateway', 'main.js'));
}

async function startScript(script, args) {
  const child = await startChild({
    command: process.execPath,
    args: [path.join(__dirname, script), ...args],
    isReady: (line) => line.startsWith('{'),
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  const { port } = JSON.parse(child.readyLine);
  return proxyOf(child, { port });
}

/**
 * Nightshift's gateway. Without further settings its limits never hold a request back.
 *
 * @param {string} origin host and port of the only backend
 * @param {object} bench
 * @param {object} [settings] members of the section `gateway`
 */
async function startGateway(origin, { root, scratch }, settings = {}) {
  const [port, observability] = [await freePort(), await freePort()];
  const config = path.join(scratch, `gateway-${port}.json`);
  const pools = { main: { models: ['*'], backends: [{ url: url(origin) }] } };
  const adaptive = { initial: 1_000, max: 1_000 };
  const gateway = { port, observability_port: observability, pools, adaptive, ...settings };
  fs.writeFileSync(config, JSON.stringify({ gateway }));
  const child = await startChild({
    command: process.execPath,
    args: [path.join(root, 'cli', 'nightshift.js'), 'gateway', '--config', config],
    isReady: (line) => line.includes('gateway ready'),
    readyOn: 'stderr',
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  await isServing(`http://127.0.0.1:${observability}/ready`);
  return proxyOf(child, { port });
}

async function startPortkey(origin) {
  const port = await freePort();
  const root = path.dirname(require.resolve('@portkey-ai/gateway/package.json'));
  const child = await startChild({
    command: process.execPath,
    args: [path.join(root, 'build', 'start-server.js'), `--port=${port}`, '--headless'],
    env: { ...process.env, TRUSTED_CUSTOM_HOSTS: '127.0.0.1' },
    isReady: (line) => line.includes(String(port)),
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  const lines = ['provider: openai', `custom-host: ${url(origin)}/v1`].map((l) => `x-portkey-${l}`);
  return proxyOf(child, { port, headers: [...lines, 'Authorization: Bearer unused'].join('|') });
}

/** The gateway is ready when its first probe of the origin has succeeded. */
async function isServing(readyUrl) {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const { ok } = await fetch(readyUrl).catch(() => ({ ok: false }));
    if (ok) return;
    if (performance.now() > deadline) throw new Error('the gateway did not become ready');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function proxyOf(child, { port, headers = '' }) {
  const stop = () => child.stop(STOP_TIMEOUT_MS);
  return { pid: child.pid, address: `127.0.0.1:${port}`, headers, stop };
}

function url(address) {
  return `http://${address}`;
}

module.exports = { isPresent, PROXIES, startGateway };
