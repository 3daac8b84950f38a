'use strict';

/**
 * Rows F5 and F6: what a proxy in front of a model server adds to answers and to events of streams, beside other
 * proxies. Only one contender works at a time.
 */
const os = require('node:os');
const { calmRuns } = require('../calm');
const { median, rounded } = require('../figures');
const { measure, startMock, startServer } = require('../mock-server');
const { isPresent, PROXIES } = require('../peers/proxies');
const { cpuSec } = require('../process-stats');

const CONNECTIONS = 64;
const RATE = 500;
const LATENCY_MS = 50;
const WARM_UP_SEC = 2;
const STREAMS = 500;
const EVENT_INTERVAL = '50ms';
/** Without those that cannot pass on 10,000 events a second on one core. */
const STREAMING = ['gateway', 'pass-through', 'plain proxy', 'Go ReverseProxy'];

/** Row F5. @returns {Promise<import('../report').Result>} */
async function addedLatency(bench) {
  const seconds = bench.quick ? 3 : 10;
  const mock = await startMock();
  const contenders = await startAll(bench, { origin: mock.address, names: Object.keys(PROXIES) });
  const runs = [];
  try {
    await mock.reset();
    const loads = loadInTurns(bench, contenders);
    await mock.reset({ latencyMs: LATENCY_MS });
    for (let round = 0; round < bench.repeat; round++) {
      for (const { who, target } of contenders) {
        bench.note(`at ${RATE} requests a second: ${who}`);
        const paced = () => measure('pace', { ...target, rate: RATE, seconds });
        const figures = async () => ({ ...loads.get(who), ...latencies(paced()) });
        runs.push(await turn(bench, { who }, figures));
      }
    }
  } finally {
    for (const { stop } of contenders) await stop();
    await mock.stop();
  }
  const title = `${RATE} requests a second to a server that takes ${LATENCY_MS} ms; rate at 0 ms`;
  return { row: 'F5', title, verdicts: judgeAnswers(runs, bench), runs };
}

/** Starts every contender. Those that are not measured are idle. */
async function startAll(bench, { origin, names }) {
  const nothing = async () => {};
  const started = [{ who: 'direct', pid: null, target: { address: origin }, stop: nothing }];
  for (const who of names.filter((name) => isPresent(name, bench))) {
    const { pid, address, headers, stop } = await PROXIES[who](origin, bench);
    started.push({ who, pid, target: { address, headers }, stop });
  }
  return started;
}

/**
 * Loads each contender for a second in its turn, several times. Turns that alternate meet the same disturbances, so
 * ratios of the medians hold on a machine that is not quite calm.
 */
function loadInTurns(bench, contenders) {
  const turns = new Map(contenders.map(({ who }) => [who, []]));
  for (const { target } of contenders) load(target, WARM_UP_SEC);
  for (let round = 0; round < (bench.quick ? 5 : 10); round++) {
    bench.note(`load, round ${round + 1}`);
    for (const { who, pid, target } of contenders) {
      const { found, used } = cpuMicros(
        pid,
        () => load(target, 1),
        ({ requests }) => requests,
      );
      turns.get(who).push({ rate: found.perSec, used });
    }
  }
  return new Map(
    [...turns].map(([who, all]) => {
      const used = who === 'direct' ? '' : rounded(median(all.map((one) => one.used)), 1);
      return [who, { 'req/s': rounded(median(all.map(({ rate }) => rate))), 'CPU, µs': used }];
    }),
  );
}

function latencies({ p50, p99 }) {
  return { 'p50, ms': p50, 'p99, ms': p99 };
}

/** Row F6. @returns {Promise<import('../report').Result>} */
async function eventDelay(bench) {
  const seconds = bench.quick ? 3 : 10;
  const server = await startServer('stream', ['--interval', EVENT_INTERVAL]);
  const runs = [];
  try {
    const figures = ({ target, pid }) => {
      const listen = () => measure('listen', { ...target, streams: STREAMS, seconds });
      const { found, used } = cpuMicros(pid, listen, ({ count }) => count);
      const { count, p50, p99, max } = found;
      return { events: count, 'CPU, µs': used, 'p50, ms': p50, 'p99, ms': p99, 'max, ms': max };
    };
    for (let round = 0; round < bench.repeat; round++) {
      const contenders = { origin: server.address, names: STREAMING };
      runs.push(...(await turns(bench, contenders, figures)));
    }
  } finally {
    await server.stop();
  }
  const title = `${STREAMS} streams of 20 events a second: how late an event comes`;
  return { row: 'F6', title, verdicts: judgeEvents(runs, bench), runs };
}

/** The server without a proxy, then each proxy in front of it. */
async function turns(bench, { origin, names }, figures) {
  const runs = [
    await turn(bench, { who: 'direct', pid: null, target: { address: origin } }, figures),
  ];
  for (const who of names.filter((name) => isPresent(name, bench))) {
    bench.note(`in turn: ${who}`);
    const { pid, address, headers, stop } = await PROXIES[who](origin, bench);
    try {
      runs.push(await turn(bench, { who, pid, target: { address, headers } }, figures));
    } finally {
      await stop();
    }
  }
  return runs;
}

async function turn(bench, { who, ...subject }, figures) {
  const work = async () => ({ ...(await figures(subject)), load1: rounded(os.loadavg()[0], 1) });
  const [run] = await calmRuns({ ...bench, retries: 0 }, work, 1);
  return { who, ...run };
}

/** Processor time of a proxy for each request or event, µs: other programs disturb it less than a rate. */
function cpuMicros(pid, work, countOf) {
  const before = pid === null ? 0 : cpuSec(pid);
  const found = work();
  const used = pid === null ? '' : rounded(((cpuSec(pid) - before) * 1e6) / countOf(found), 1);
  return { found, used };
}

function load(target, seconds) {
  return measure('load', { ...target, connections: CONNECTIONS, seconds });
}

function judgeAnswers(runs, bench) {
  const own = ownName(bench);
  const of = medians(runs);
  const added = (column) => rounded(of(own, column) - of('direct', column), 2);
  const ratio = (peer) => rounded(of(own, 'req/s') / of(peer, 'req/s'), 2);
  return [
    atMost(`${own}: p50 added`, added('p50, ms'), [0.6, 0.3]),
    atMost(`${own}: p99 added`, added('p99, ms'), [3, 1.5]),
    atLeast(`${own} to the plain proxy`, ratio('plain proxy'), [0.75, 0.9]),
    atLeast(`${own} to @fastify/http-proxy`, ratio('@fastify/http-proxy'), [1, 1.3]),
    atLeast(`${own} to @portkey-ai/gateway`, ratio('@portkey-ai/gateway'), [3, 5]),
    atLeast(`${own} to Go ReverseProxy`, ratio('Go ReverseProxy'), [0, 0.5]),
  ];
}

function judgeEvents(runs, bench) {
  const own = ownName(bench);
  const of = medians(runs);
  const added = rounded(of(own, 'p99, ms') - of('direct', 'p99, ms'), 2);
  return [atMost(`${own}: p99 added`, added, [5, 2])];
}

/** The gateway is judged, or the pass-through alone in a checkout without it. */
function ownName(bench) {
  return isPresent('gateway', bench) ? 'gateway' : 'pass-through';
}

function medians(runs) {
  return (who, column) => median(runs.filter((run) => run.who === who).map((run) => run[column]));
}

function atMost(what, value, [must, aim]) {
  return {
    what,
    value: `${value} ms`,
    must: `≤ ${must} ms`,
    aim: `≤ ${aim} ms`,
    met: value <= must,
  };
}

function atLeast(what, value, [must, aim]) {
  return { what, value: `${value}x`, must: `≥ ${must}x`, aim: `≥ ${aim}x`, met: value >= must };
}

module.exports = { addedLatency, eventDelay };
