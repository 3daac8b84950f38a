'use strict';

/**
 * The least that passes requests on: Node's own server and undici's `dispatch`, with back-pressure and aborts, and
 * without limits, queue, checks or measuring. Prints `{"port": …}`; ends when its input does.
 *
 * node plain-proxy.js <origin>
 */
const { createServer } = require('node:http');
const { Pool } = require('undici');

const HOP_BY_HOP = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'transfer-encoding',
]);

function main([origin]) {
  const pool = new Pool(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url: path, rawHeaders } = request;
      const headers = passed(rawHeaders);
      pool.dispatch({ method, path, headers, body: Buffer.concat(chunks) }, handler(response));
    });
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
  });
  process.stdin.resume().on('end', () => process.exit(0));
}

function handler(response) {
  let resume = () => undefined;
  response.on('drain', () => resume());
  return {
    onConnect: (abort) => response.on('close', abort),
    onHeaders: (status, rawHeaders, go) => {
      if (status < 200) return true;
      resume = go;
      response.writeHead(status, passed(rawHeaders.map((field) => field.toString('latin1'))));
      return true;
    },
    onData: (chunk) => response.write(chunk),
    onComplete: () => response.end(),
    onError: () => (response.headersSent ? response.destroy() : response.writeHead(502).end()),
  };
}

function passed(rawHeaders) {
  const kept = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!HOP_BY_HOP.has(rawHeaders[i].toLowerCase())) kept.push(rawHeaders[i], rawHeaders[i + 1]);
  }
  return kept;
}

main(process.argv.slice(2));
