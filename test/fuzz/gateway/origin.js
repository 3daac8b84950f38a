'use strict';

const http = require('node:http');
const { createHash } = require('node:crypto');
const { answerOf } = require('./answers.js');

/** The field with the index of a request. */
const INDEX = 'x-fuzz-index';

/** A model server that answers as {@link answerOf} says; `bodies` gets the hash of each body by its index. */
async function startOrigin(seed, bodies) {
  const server = http.createServer((request, response) => {
    if (request.method === 'GET') return void response.end();
    const hash = createHash('sha256');
    request.on('data', (chunk) => hash.update(chunk));
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    request.on('end', () => {
      const index = Number(request.headers[INDEX]);
      const found = bodies.get(index) ?? [];
      bodies.set(index, [...found, hash.digest('hex')]);
      void respond(response, answerOf(seed, index));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

async function respond(response, { status, headers, chunks, gapMs, end }) {
  // Not that of the response, which may have none yet: an answer of known length ends for its reader before `end`.
  const { socket } = response.req;
  if (end === 'silent') return void socket.destroy();
  if (end === 'noise') return void socket.end('this is no HTTP\r\n\r\n');
  response.writeHead(status, headers.flat());
  for (const [i, chunk] of chunks.entries()) {
    // Half of the body, and never its end.
    if (end === 'cut' && i >= chunks.length >> 1) break;
    response.write(chunk);
    if (gapMs > 0) await new Promise((resolve) => setTimeout(resolve, gapMs));
  }
  if (end !== 'cut') return void response.end();
  // What was written leaves before the connection ends.
  if (!response.headersSent || chunks.length < 2) response.flushHeaders();
  setImmediate(() => socket.end());
}

module.exports = { startOrigin, INDEX };
