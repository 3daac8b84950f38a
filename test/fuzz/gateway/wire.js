'use strict';

const http = require('node:http');
const { createWire, PATIENCE_MS } = require('../wire.js');

/** Sends requests to one gateway, and may leave before the answer; `close` ends its connections. */
function createLeavingWire(baseUrl) {
  return createWire(baseUrl, send);
}

/**
 * { status, headers, body, isWhole }; `isWhole` is false if the connection ended before the answer did. Null if the
 * client left first, as `leave` says. Rejects if no answer comes.
 */
function send(target, { method, path, headers, body, isChunked, leave }) {
  return new Promise((resolve, reject) => {
    const length =
      body === null || isChunked === true ? {} : { 'content-length': String(body.length) };
    const options = { ...target, method, path, headers: { ...headers, ...length } };
    let hasLeft = false;
    const request = http.request({ ...options, timeout: PATIENCE_MS }, (response) => {
      if (leave !== undefined) return hangUp();
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', () => undefined);
      response.on('close', () => {
        const { statusCode: status, headers: received, complete: isWhole } = response;
        resolve({ status, headers: received, body: Buffer.concat(chunks), isWhole });
      });
    });
    const hangUp = () => {
      hasLeft = true;
      request.destroy();
      resolve(null);
    };
    request.on('error', (error) => (hasLeft ? undefined : reject(error)));
    request.on('timeout', () => request.destroy(new Error(`no answer for ${PATIENCE_MS} ms`)));
    const bytes = body ?? Buffer.alloc(0);
    if (leave === 'amid') {
      request.write(bytes.subarray(0, bytes.length >> 1), () => setImmediate(hangUp));
    } else if (isChunked === true) {
      request.write(bytes.subarray(0, bytes.length >> 1));
      request.end(bytes.subarray(bytes.length >> 1));
    } else {
      request.end(bytes, () => leave === 'sent' && setImmediate(hangUp));
    }
  });
}

module.exports = { createLeavingWire };
