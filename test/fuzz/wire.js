'use strict';

const http = require('node:http');
const net = require('node:net');

const PATIENCE_MS = 60_000;

/** Sends requests to one server, by default whole ones with `send`; `close` ends its connections. */
function createWire(baseUrl, sendOne = send) {
  const { hostname, port } = new URL(baseUrl);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  return {
    send: (request) => sendOne({ hostname, port, agent }, request),
    sendRaw: (request) => sendRaw({ hostname, port }, request),
    close: () => agent.destroy(),
  };
}

/** { status, headers, body }; rejects where no answer comes. */
function send(target, { method, path, headers, body, isChunked }) {
  return new Promise((resolve, reject) => {
    const length =
      body === null || isChunked === true ? {} : { 'content-length': String(body.length) };
    const options = { ...target, method, path, headers: { ...headers, ...length } };
    const request = http.request({ ...options, timeout: PATIENCE_MS }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status, headers: received } = response;
        resolve({ status, headers: received, body: Buffer.concat(chunks) });
      });
    });
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error(`no answer for ${PATIENCE_MS} ms`)));
    if (body !== null && isChunked === true) {
      request.write(body.subarray(0, body.length >> 1));
      request.end(body.subarray(body.length >> 1));
    } else {
      request.end(body ?? undefined);
    }
  });
}

/** Everything that comes back until the connection is closed. */
function sendRaw({ hostname, port }, { bytes, leave }) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    const socket = net.connect(Number(port), hostname);
    // What is half a request is waited for: a client that stays is no fault of the server.
    const patience = setTimeout(() => socket.destroy(), leave === 'wait' ? 300 : PATIENCE_MS);
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error) => {
      if (!['ECONNRESET', 'EPIPE'].includes(error.code)) reject(error);
    });
    socket.on('close', () => {
      clearTimeout(patience);
      resolve(Buffer.concat(chunks));
    });
    socket.write(bytes, () => {
      if (leave === 'end') socket.end();
      if (leave === 'destroy') socket.destroy();
    });
  });
}

module.exports = { createWire, PATIENCE_MS };
