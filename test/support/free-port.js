'use strict';

const { randomInt } = require('node:crypto');
const net = require('node:net');

/**
 * Above the ports that `nightshift dev` looks for by itself, and below those that operating systems give to outgoing
 * connections (Linux from 32,768, others from 49,152): some time passes until the test's server listens.
 */
const [FIRST_PORT, LAST_PORT] = [12_000, 32_000];
const TRIES = 50;

/** A loopback port that nothing listens on right now. */
async function freePort() {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = randomInt(FIRST_PORT, LAST_PORT);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${TRIES} ports between ${FIRST_PORT} and ${LAST_PORT} is free`);
}

function isFree(port) {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

module.exports = { freePort };
