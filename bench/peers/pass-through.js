'use strict';

/**
 * Nightshift's pass-through alone, without the queue and the rules of the gateway. Prints `{"port": …}`; ends when
 * its input does.
 *
 * node pass-through.js <origin> <checkout>
 */
const { createServer } = require('node:http');
const path = require('node:path');

function main([url, root]) {
  const proxy = path.join(root, 'dist', 'inference', 'proxy');
  const { passThrough } = require(path.join(proxy, 'pass-through.js'));
  const { openProxiedBackend } = require(path.join(proxy, 'proxied-backend.js'));
  const limits = { connections: 4096, connectTimeoutMs: 2_000 };
  const backend = openProxiedBackend({ url, authorization: null, tls: {}, ...limits });
  const settings = { ownHeaders: [], keepsAuthorization: true };
  const times = { requestTimeoutMs: 300_000, stallTimeoutMs: 60_000 };
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url: asked, rawHeaders: headers } = request;
      const sent = { method, path: asked, headers, body: Buffer.concat(chunks) };
      const onSettled = (end) => {
        if (!end.isHeadSent) response.writeHead(502).end();
      };
      passThrough({ backend, response, ...sent, ...settings, ...times }, { onSettled });
    });
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
  });
  process.stdin.resume().on('end', () => process.exit(0));
}

main(process.argv.slice(2));
