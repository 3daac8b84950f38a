'use strict';

/** Row F9: shares of tenants, by tokens and weights, over two workers: with the gateway and without. */
const fs = require('node:fs');
const path = require('node:path');
const { freePort } = require('../../test/support/free-port');
const { pause } = require('../api-client');
const { startChild } = require('../children');
const { rounded } = require('../figures');
const { startProduct } = require('../product');

/** Tenant 1 has weight 3, tenant 2 has ten batches, the others have one batch and weight 1. */
const TENANTS = ['t1', 't2', 't3', 't4', 't5', 't6', 't7', 't8'];
const WEIGHTS = { t1: 3 };
const BATCHES = { t2: 10 };
/** Floods with ten more batches between the second and the third window. */
const FLOODING = 't3';
const FLOOD_BATCHES = 10;
/** Batches from this number on are of the flood. */
const FLOOD_INDEX = 100;
/** Enough for the run, so that no tenant is done before its end. */
const LINES = { t1: 7_200, t2: 800 };
const LINES_OF_OTHERS = 2_400;
const FLOOD_LINES = 400;
/** Windows before the flood, and as many after it. */
const WINDOWS = { quick: { count: 2, ms: 15_000 }, full: { count: 1, ms: 60_000 } };
/** From the start of the flood to the next window. */
const FLOOD_MS = 5_000;
const SLOTS = 32;
const LONGEST_OUTPUT = 256;
const PROMPT_BYTES = [100, 200, 400, 800, 1_600];
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const WARM_UP_MS = 20_000;

const VARIANTS = {
  'with the gateway': { hasGateway: true, must: 0.98, aim: 0.995 },
  'without it': { hasGateway: false, must: 0.95, aim: 0.98 },
};
/** A flood may change the share of another tenant by so much, as a part of it. */
const MOST_CHANGED = 0.05;

/** @returns {Promise<import('../report').Result>} */
async function shares(bench) {
  const windows = bench.quick ? WINDOWS.quick : WINDOWS.full;
  const only = process.env.BENCH_F9;
  const runs = [];
  const verdicts = [];
  for (const [name, variant] of Object.entries(VARIANTS)) {
    if (only !== undefined && only !== name) continue;
    const { before, after } = await inStack(bench, variant, (stack) => measure(stack, windows));
    runs.push(...before.map((tokens) => rowOf(name, 'before the flood', tokens)));
    runs.push(...after.map((tokens) => rowOf(name, 'during the flood', tokens)));
    verdicts.push(...verdictsOf(name, variant, { before, after }));
  }
  const title = `shares of 8 tenants over two workers, windows of ${windows.ms / 1000} s`;
  return { row: 'F9', title, verdicts, runs };
}

/** Tokens by tenant in each window, before the flood and during it. */
async function measure({ submit, tokens, note }, windows) {
  await Promise.all(
    TENANTS.map(async (tenant) => {
      for (let i = 0; i < (BATCHES[tenant] ?? 1); i++) await submit(tenant, i);
    }),
  );
  await pause(WARM_UP_MS);
  const before = await measureWindows(tokens, windows);
  note('the flood begins');
  for (let k = 0; k < FLOOD_BATCHES; k++) await submit(FLOODING, FLOOD_INDEX + k);
  await pause(FLOOD_MS);
  return { before, after: await measureWindows(tokens, windows) };
}

async function measureWindows(tokens, { count, ms }) {
  const windows = [];
  for (let i = 0; i < count; i++) {
    const before = await tokens();
    await pause(ms);
    const after = await tokens();
    windows.push(TENANTS.map((tenant) => (after[tenant] ?? 0) - (before[tenant] ?? 0)));
  }
  return windows;
}

function rowOf(variant, window, tokens) {
  const total = tokens.reduce((sum, one) => sum + one, 0);
  return {
    variant,
    window,
    'Jain index': rounded(jain(tokens), 4),
    tokens: Math.round(total),
    ...Object.fromEntries(TENANTS.map((tenant, i) => [`${tenant}, %`, percent(tokens[i] / total)])),
  };
}

function verdictsOf(name, { must, aim }, { before, after }) {
  const worst = Math.min(...[...before, ...after].map(jain));
  const changed = mostChanged(partsOf(before), partsOf(after));
  return [
    {
      what: `Jain index of tokens / weight, worst window, ${name}`,
      value: worst.toFixed(4),
      must: `≥ ${must}`,
      aim: `≥ ${aim}`,
      met: worst >= must,
    },
    {
      what: `change of another tenant's share by a flood, ${name}`,
      value: `${percent(changed)} %`,
      must: `≤ ${percent(MOST_CHANGED)} %`,
      aim: '',
      met: changed <= MOST_CHANGED,
    },
  ];
}

/** Jain, Chiu and Hawe, 1984: 1 if all are equal, 1/n if one has all. */
function jain(tokens) {
  const shares = tokens.map((count, i) => count / (WEIGHTS[TENANTS[i]] ?? 1));
  const sum = shares.reduce((a, b) => a + b, 0);
  const squares = shares.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? 0 : sum ** 2 / (shares.length * squares);
}

/** The largest change of the share of a tenant that does not flood. */
function mostChanged(before, after) {
  const changes = TENANTS.map((tenant, i) =>
    tenant === FLOODING ? 0 : Math.abs(after[i] / before[i] - 1),
  );
  return Math.max(...changes);
}

/** The part of each tenant in the tokens of some windows together. */
function partsOf(windows) {
  const tokens = TENANTS.map((_, i) => windows.reduce((sum, window) => sum + window[i], 0));
  const total = tokens.reduce((sum, one) => sum + one, 0);
  return tokens.map((one) => one / total);
}

function percent(part) {
  return rounded(100 * part, 1);
}

/** Two workers, and simulated engines behind them. */
async function inStack(bench, { hasGateway }, work) {
  const stops = [];
  try {
    const engines = hasGateway
      ? [await startEngine(bench, SLOTS / 2), await startEngine(bench, SLOTS / 2)]
      : [await startEngine(bench, SLOTS)];
    stops.push(...engines.map((engine) => () => engine.stop(STOP_TIMEOUT_MS)));
    const { gatewayUrl, settings } = hasGateway
      ? await throughGateway(bench, engines)
      : { gatewayUrl: engines[0].url, settings: straight() };
    const product = await startProduct({ ...bench, gatewayUrl, settings });
    stops.push(() => product.stop());
    const second = await startSecondWorker(bench, product);
    stops.push(() => second.stop(STOP_TIMEOUT_MS));
    const run = JSON.parse(fs.readFileSync(path.join(product.dataDir, 'run', 'config.json')));
    const pages = [run.worker.observability_port, second.observabilityPort];
    return await work({
      note: bench.note,
      submit: (tenant, index) => submit(product.api, tenant, index),
      tokens: () => tokensByTenant(pages),
    });
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** As many permits on both workers together as the engine has slots. */
function straight() {
  const permits = SLOTS / 2;
  return { ...SHARED, concurrency: { global: permits, per_model: permits } };
}

const SHARED = { auth: { mode: 'header' }, fairness: { tenants: WEIGHTS } };

/** On each worker, twice as many permits as slots: a tenant whose chunks all run on one of them still queues. */
async function throughGateway({ scratch }, engines) {
  const token = path.join(scratch, 'worker-token');
  fs.writeFileSync(token, 'a-token-of-the-workers', { mode: 0o600 });
  const port = await freePort();
  const settings = {
    ...SHARED,
    concurrency: { global: 2 * SLOTS, per_model: 2 * SLOTS },
    gateway: {
      port,
      observability_port: await freePort(),
      worker_token_file: token,
      pools: { main: { models: ['*'], backends: engines.map(({ url }) => ({ url })) } },
    },
    global_inference_gateway: {
      ...{ api_key_file: token, request_timeout: '6m' },
      ...{ inference_objective: 'batch', send_fairness_header: true },
    },
  };
  return { gatewayUrl: `http://127.0.0.1:${port}`, settings };
}

async function startEngine({ root }, slots) {
  const port = await freePort();
  const args = ['simulator', '--port', port, '--slots', slots, '--output-tokens', LONGEST_OUTPUT];
  const engine = await startChild({
    command: process.execPath,
    args: [path.join(root, 'cli', 'nightshift.js'), ...args.map(String)],
    readyOn: 'stderr',
    isReady: (line) => line.includes('simulator ready'),
    readyTimeoutMs: START_TIMEOUT_MS,
  });
  return { ...engine, url: `http://127.0.0.1:${port}` };
}

/** A worker beside that of the stack, with the same settings. */
async function startSecondWorker({ root }, { dataDir }) {
  const settings = JSON.parse(fs.readFileSync(path.join(dataDir, 'run', 'config.json'), 'utf8'));
  const observabilityPort = await freePort();
  settings.worker = { ...settings.worker, observability_port: observabilityPort };
  settings.log = { ...settings.log, level: 'info' };
  const file = path.join(dataDir, 'run', 'worker-2.json');
  fs.writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  const worker = await startChild({
    command: process.execPath,
    args: [path.join(root, 'cli', 'nightshift.js'), 'worker', '--config', file],
    // Its first line of the log.
    readyOn: 'stderr',
    isReady: () => true,
    readyTimeoutMs: START_TIMEOUT_MS,
  });
  await untilReady(observabilityPort);
  return { ...worker, observabilityPort };
}

async function untilReady(port) {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => null);
    if (answer?.ok) return;
    if (performance.now() > untilMs) throw new Error('the second worker is not ready');
    await pause(200);
  }
}

/** Tokens that both workers together got for each tenant so far. */
async function tokensByTenant(ports) {
  const counts = {};
  for (const port of ports) {
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const series = /^worker_service_tokens_total\{.*?tenant="([^"]*)".*?\} (\S+)$/gm;
    for (const [, tenant, value] of page.matchAll(series)) {
      counts[tenant] = (counts[tenant] ?? 0) + Number(value);
    }
  }
  return counts;
}

async function submit(api, tenant, index) {
  const headers = { 'x-maas-username': tenant };
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([linesOf(tenant, index)]), 'bench.jsonl');
  const file = await expectOk(fetch(`${api}/files`, { method: 'POST', headers, body: form }));
  const body = {
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  };
  const json = { ...headers, 'content-type': 'application/json' };
  await expectOk(
    fetch(`${api}/batches`, { method: 'POST', headers: json, body: JSON.stringify(body) }),
  );
}

async function expectOk(call) {
  const response = await call;
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

/** Output by Zipf's law with exponent 1, and prompts of five lengths; the same on every machine. */
function linesOf(tenant, index) {
  let state = 1 + TENANTS.indexOf(tenant) * 1_000 + index;
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  const lines = [];
  const count = index >= FLOOD_INDEX ? FLOOD_LINES : (LINES[tenant] ?? LINES_OF_OTHERS);
  for (let i = 0; i < count; i++) {
    // The inverse of the distribution: P(length ≥ x) is about 8 / x.
    const length = Math.min(LONGEST_OUTPUT, Math.floor(8 / Math.max(1e-6, next())));
    const bytes = PROMPT_BYTES[Math.floor(next() * PROMPT_BYTES.length)];
    const content = `${tenant} ${index} ${i} `.padEnd(bytes, 'night shift ');
    const body = { model: 'm', max_tokens: length, messages: [{ role: 'user', content }] };
    lines.push(
      JSON.stringify({ custom_id: `r-${i}`, method: 'POST', url: '/v1/chat/completions', body }),
    );
  }
  return `${lines.join('\n')}\n`;
}

module.exports = { shares };
