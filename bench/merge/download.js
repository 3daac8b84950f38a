'use strict';

/** A client that discards what it downloads, into one buffer, so that the server is what is measured. */
const net = require('node:net');

const BUFFER_BYTES = 1 << 20;
const STALL_MS = 30_000;

/**
 * Downloads one file. Throws if the answer is not 200 or has fewer bytes than `bytes`.
 *
 * @param {string} url of http
 * @param {number} bytes length of the body
 * @returns {Promise<number>} seconds from the connection to the last byte
 */
function download(url, bytes) {
  const { hostname, port, pathname } = new URL(url);
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    let status = null;
    let received = 0;
    const callback = (length, buffer) => {
      status ??= buffer.toString('latin1', 0, 12);
      received += length;
      return true;
    };
    const onread = { buffer: Buffer.allocUnsafeSlow(BUFFER_BYTES), callback };
    const socket = net.connect({ host: hostname, port: Number(port), onread }, () => {
      socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
    });
    socket.setTimeout(STALL_MS, () => socket.destroy(new Error(`${url}: stalled`)));
    socket.on('error', reject);
    socket.on('close', () => {
      if (status === 'HTTP/1.1 200' && received >= bytes) {
        resolve((performance.now() - startedMs) / 1000);
      } else reject(new Error(`${url}: ${status}, ${received} bytes`));
    });
  });
}

module.exports = { download };
