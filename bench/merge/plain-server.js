'use strict';

/** The least that serves a file: `node bench/merge/plain-server.js FILE`. Prints its port. */
const fs = require('node:fs');
const http = require('node:http');

const [file] = process.argv.slice(2);
const server = http.createServer((_request, response) => {
  response.setHeader('content-length', fs.statSync(file).size);
  fs.createReadStream(file).pipe(response);
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
