'use strict';

/**
 * The part of `npm run fuzz` with `--gateway`: random requests to a gateway in front of two model servers that answer
 * at random. Bytes must arrive unchanged both ways, nothing that was cut may look whole, and 5xx are those of
 * docs/design/flow-control.md#errors. Afterwards nothing is in flight, waits or is held in memory.
 */
const { judgeMemory, playAll } = require('../play.js');
const { randomFor } = require('../random.js');
const { rawFaultOf } = require('../verdicts.js');
const { processFigures } = require('../watch.js');
const { startOrigin } = require('./origin.js');
const { startGateway } = require('./process.js');
const { makeRequest } = require('./requests.js');
const { faultOf, isKnownError } = require('./verdicts.js');
const { createLeavingWire } = require('./wire.js');

const BACKENDS = 2;
const MOST_GROWTH_MB = 40;
const MOST_OPEN_FILES = 30;
const CALM_MS = 10_000;

/** Runs it; what is wrong, in words. */
async function fuzzGateway({ requests, seed, first }) {
  const bodies = new Map();
  const origins = [];
  for (let i = 0; i < BACKENDS; i++) origins.push(await startOrigin(seed, bodies));
  const gateway = await startGateway(origins.map(({ url }) => url));
  const run = { ...{ requests, seed, first, bodies, gateway }, backends: BACKENDS };
  Object.assign(run, {
    statuses: {},
    faults: [],
    samples: [],
    wire: createLeavingWire(gateway.url),
  });
  try {
    const before = processFigures(gateway.pid);
    await playAll(run, {
      sendOne: (_run, index) => sendOne(run, index).finally(() => run.bodies.delete(index)),
      sample: () => processFigures(gateway.pid),
      mayGoOn: () => !gateway.hasEnded(),
    });
    run.wire.close();
    await judge(run, before);
  } finally {
    run.wire.close();
    await gateway.stop();
    for (const origin of origins) await origin.stop();
  }
  return run.faults;
}

async function sendOne(run, index) {
  const { gateway, seed, wire } = run;
  const request = makeRequest(randomFor(seed, index), { index, token: gateway.token });
  if (request.kind === 'raw') {
    const bytes = await wire.sendRaw(request);
    const fault = isKnownError(bytes) ? null : rawFaultOf(bytes);
    if (fault !== null) run.faults.push(`${index} raw: ${fault}`);
    return;
  }
  const answer = await wire.send(request);
  const fault = answer === null ? null : faultOf(run, request, answer);
  if (fault !== null) run.faults.push(`${index} ${request.method} ${request.path}: ${fault}`);
  const end = answer === null ? 'left' : `${answer.status}${answer.isWhole ? '' : ' broken'}`;
  const name = `${request.kind} ${end}`;
  run.statuses[name] = (run.statuses[name] ?? 0) + 1;
}

async function judge(run, before) {
  const { faults, gateway, statuses } = run;
  console.log(`answers: ${JSON.stringify(statuses)}`);
  if (gateway.hasEnded()) return void faults.push(`the gateway ended:\n${gateway.said()}`);
  const left = await leftAfter(run, before);
  if (left !== null) faults.push(`left after the run: ${left}`);
  const said = gateway.said();
  if (said !== '') faults.push(`logged: ${said.slice(0, 2_000)}`);
  const after = processFigures(gateway.pid);
  console.log(`memory: ${before.rssMb?.toFixed(0)} MB before, ${after.rssMb?.toFixed(0)} MB after`);
  if (before.rssMb !== null) judgeMemory(run, MOST_GROWTH_MB);
}

/** What the gateway still holds when all clients are gone; null if it is nothing. */
async function leftAfter({ gateway }, before) {
  const untilMs = performance.now() + CALM_MS;
  for (;;) {
    const { receiving_bytes: receiving, pools } = await gateway.flow();
    const [{ stock, queued_bytes: bytes, backends }] = pools;
    const inFlight = backends.map(({ in_flight: count }) => count);
    const files = processFigures(gateway.pid).openFiles - before.openFiles;
    const counts = [receiving, stock.requests, stock.cost, bytes, ...inFlight];
    const isCalm = counts.every((count) => count === 0) && files <= MOST_OPEN_FILES;
    if (isCalm) return null;
    const left = { receiving, stock, bytes, inFlight, files };
    if (performance.now() > untilMs) return JSON.stringify(left);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

module.exports = { fuzzGateway };
