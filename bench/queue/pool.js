'use strict';

/** A pool of the product as the measurements of rows F1 to F4 use it. */
const path = require('node:path');

const POOL = 'dist/core/dispatch';
/** Tokens of a request: a few hundred to a few thousand, always the same sequence. */
const COSTS = Array.from({ length: 97 }, (_, i) => 200 + ((i * 7_919) % 3_000));

/** @param {string} root a checkout that is built */
function loadProduct(root) {
  const load = (file) => require(path.join(root, POOL, file));
  return {
    ...load('queue/fair-request-queue.js'),
    ...load('queue/queued-request.js'),
    ...load('pool/pool-settings.js'),
    ...load('pool/request-queue-controller.js'),
    ...load('pool/admitted.js'),
  };
}

const SILENT = { dispatched: () => {}, dropped: () => {} };

/** Makes requests of `flows` tenants, one after the other. */
function requestSource({ QueuedRequest }, flows, owner = SILENT) {
  const tenants = Array.from({ length: flows }, (_, i) => `tenant-${i}`);
  let made = 0;
  const options = () => {
    const i = made++;
    return { tenant: tenants[i % flows], model: 'model', cost: COSTS[i % COSTS.length] };
  };
  return { options, next: () => new QueuedRequest(options(), owner) };
}

/** A controller without limits on what waits, and `limit` requests in flight. */
function openPool({ POOL_DEFAULTS, RequestQueueController }, { limit, defer = setImmediate, now }) {
  const unlimited = { totalCapacity: 1e9, flowCapacity: 1e9, sheddableCapacity: 1e9 };
  const settings = {
    ...POOL_DEFAULTS,
    fairRequestQueue: { ...POOL_DEFAULTS.fairRequestQueue, ...unlimited, queueBytes: 2 ** 40 },
  };
  const onError = (error) => {
    throw error;
  };
  const clock = now ?? (() => performance.now());
  const controller = new RequestQueueController(settings, { now: clock, defer, onError });
  const setLimit = (most) =>
    controller.updatePool({ readyBackends: 1, limit: most, sheddableCap: Infinity });
  setLimit(limit);
  return { controller, setLimit };
}

module.exports = { loadProduct, openPool, requestSource };
