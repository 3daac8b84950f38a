'use strict';

/**
 * The peer that keeps nothing: reads a file, has a number of requests in flight, writes the results
 * to another file. A crash costs all of it. Prints `{"seconds": …}` of the second file; the first
 * one warms up.
 *
 * node plain-loop.js <warm-up> <input> <output> <origin> <in flight>
 */
const fs = require('node:fs');
const { once } = require('node:events');
const { createInterface } = require('node:readline');
const { createSender } = require('./answer-of');

async function main([warmUp, input, output, origin, inFlight]) {
  const sender = createSender({ origin, inFlight: Number(inFlight) });
  await batch(sender, { input: warmUp, output, inFlight: Number(inFlight) });
  const startedMs = performance.now();
  await batch(sender, { input, output, inFlight: Number(inFlight) });
  process.stdout.write(`${JSON.stringify({ seconds: (performance.now() - startedMs) / 1000 })}\n`);
  await sender.close();
}

async function batch(sender, { input, output, inFlight }) {
  const lines = createInterface({ input: fs.createReadStream(input) })[Symbol.asyncIterator]();
  const out = fs.createWriteStream(output, { highWaterMark: 1 << 18 });
  const loop = async () => {
    for (let next = await lines.next(); !next.done; next = await lines.next()) {
      out.write(`${await sender.answer(next.value)}\n`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  out.end();
  await once(out, 'finish');
}

void main(process.argv.slice(2));
