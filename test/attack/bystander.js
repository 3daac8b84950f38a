'use strict';

/**
 * An innocent client in a process of its own: lists its batches every 20 ms and reports how long the
 * answers took. Started with `fork`; the parent sends `window` and gets the figures since the last one.
 * Requests start on a fixed schedule, so an answer that hangs does not hide the delay of those behind it.
 */
const http = require('node:http');

const EVERY_MS = 20;
const [url, tenantHeader] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
const headers = { [tenantHeader]: 'bystander' };

let figures = fresh();

function fresh() {
  return { answers: 0, failures: 0, maxMs: 0, over100: 0, lastFailure: null };
}

function ask() {
  const into = figures;
  const startedAt = performance.now();
  const settle = (failure) => {
    const tookMs = performance.now() - startedAt;
    if (failure === null) into.answers++;
    else {
      into.failures++;
      into.lastFailure = failure;
    }
    into.maxMs = Math.max(into.maxMs, tookMs);
    if (tookMs > 100) into.over100++;
  };
  const request = http.get(`${url}/v1/batches?limit=1`, { agent, headers }, (response) => {
    response.resume();
    response.on('end', () =>
      settle(response.statusCode === 200 ? null : `status ${response.statusCode}`),
    );
    response.on('error', (error) => settle(error.code));
  });
  request.on('error', (error) => settle(error.code));
}

setInterval(ask, EVERY_MS);
process.on('message', () => {
  const past = figures;
  figures = fresh();
  // Answers under way belong to the window in which they were asked for.
  setTimeout(() => process.send(past), 500);
});
process.on('disconnect', () => process.exit(0));
