'use strict';

/** A model server that records every request, when it came, and whether it was answered. */
const http = require('node:http');
const { nowMs } = require('./api-client');

/**
 * @typedef {object} Arrival
 * @property {string} lineId `x-request-id`
 * @property {number} atMs Unix ms
 * @property {number | null} endedAtMs when its answer was written or its connection ended
 * @property {boolean} answered
 */

/** Spreads the answers, so that requests that start together do not always end together. */
const GOLDEN = 0.618034;

/** Starts one on a free loopback port; it answers after half to one and a half `latencyMs`. */
async function startRecorder() {
  const state = { latencyMs: 0, arrivals: [] };
  const server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    // The probe of a gateway.
    if (request.method === 'GET') return void response.end();
    const { arrivals, latencyMs } = state;
    const lineId = String(request.headers['x-request-id']);
    const arrival = { lineId, atMs: nowMs(), endedAtMs: null, answered: false };
    arrivals.push(arrival);
    const end = (answered) => {
      arrival.endedAtMs ??= nowMs();
      arrival.answered ||= answered;
    };
    response.once('finish', () => end(true));
    response.once('close', () => end(false));
    request.resume();
    setTimeout(
      () => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"id":"${lineId}","model":"bench","choices":[]}`);
      },
      latencyMs * (0.5 + ((arrivals.length * GOLDEN) % 1)),
    );
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Forgets what it saw; answers take `latencyMs` from now on, on average. */
    reset({ latencyMs }) {
      Object.assign(state, { latencyMs, arrivals: [] });
    },
    /** Of all requests since the last reset, in order. */
    get arrivals() {
      return state.arrivals;
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

module.exports = { startRecorder };
