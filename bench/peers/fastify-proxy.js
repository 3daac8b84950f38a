'use strict';

/** `@fastify/http-proxy`. Prints `{"port": …}`; ends when its input does. node fastify-proxy.js <origin> */
const fastify = require('fastify');
const httpProxy = require('@fastify/http-proxy');

async function main([upstream]) {
  const app = fastify();
  // As many connections as the load needs; the default would queue.
  app.register(httpProxy, { upstream, undici: { connections: 4096, pipelining: 1 } });
  await app.listen({ port: 0, host: '127.0.0.1' });
  process.stdout.write(`${JSON.stringify({ port: app.server.address().port })}\n`);
  process.stdin.resume().on('end', () => process.exit(0));
}

void main(process.argv.slice(2));
