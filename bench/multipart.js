'use strict';

/**
 * Compares our reader of multipart forms with libraries (docs/decisions/0014-a-reader-of-our-own-for-forms.md).
 *
 *   npm run build && npm install --prefix FOLDER busboy @fastify/busboy
 *   node bench/multipart.js FOLDER [MEBIBYTES] [ROUNDS]
 *
 * Each reader receives the same form over loopback, in a process of its own, and hashes the file as the
 * API does. Rounds alternate between the readers. With a slow consumer, memory shows whether a reader
 * holds the client back. At the end, forms that a client should not send show what each reader accepts.
 */
const { spawn } = require('node:child_process');
const { createHash } = require('node:crypto');
const http = require('node:http');
const path = require('node:path');
const readers = require('./multipart-readers');
const { oddForms } = require('./odd-forms');

const MIB = 1024 ** 2;
const BOUNDARY = 'form-boundary-7MA4YWxkTrZu0gW';
const CHUNK = Buffer.alloc(64 * 1024, 'one line of a file for batches, again and again\n');

async function main() {
  const [folder, mebibytes = '200', rounds = '3'] = process.argv.slice(2);
  if (folder === undefined) throw new Error('name the folder that holds the libraries');
  const names = Object.keys(readers.of(folder));
  for (const pauseMs of [0, 2]) {
    const size = pauseMs === 0 ? Number(mebibytes) : Math.min(64, Number(mebibytes));
    console.log(
      `\n${size} MiB${pauseMs === 0 ? '' : ', a consumer that waits 2 ms for each chunk'}`,
    );
    const runs = Object.fromEntries(names.map((name) => [name, []]));
    for (let round = 0; round < Number(rounds); round++) {
      for (const name of names) runs[name].push(await measure({ folder, name, size, pauseMs }));
    }
    for (const name of names) report(name, runs[name], runs[names[0]]);
  }
  console.log('\nwhat each reader makes of a form');
  for (const [what, bytes] of oddForms(BOUNDARY)) {
    console.log(what);
    for (const name of names) {
      console.log(`  ${name.padEnd(16)} ${await outcome(readers.of(folder)[name], bytes)}`);
    }
  }
}

function report(name, runs, baseline) {
  const median = (of, key) => of.map((run) => run[key]).sort((a, b) => a - b)[of.length >> 1];
  const ratio = (key) => (median(runs, key) / median(baseline, key)).toFixed(2);
  console.log(
    `  ${name.padEnd(16)} ${median(runs, 'mibPerSec').toFixed(0).padStart(5)} MiB/s (x${ratio('mibPerSec')})` +
      `  CPU ${median(runs, 'cpuMs').toFixed(0).padStart(5)} ms (x${ratio('cpuMs')})` +
      `  peak +${median(runs, 'peakMib').toFixed(0)} MiB   runs ${runs.map((run) => run.mibPerSec.toFixed(0)).join(' ')}`,
  );
}

/** Starts a server with the reader, sends it one form, and returns what the server measured. */
async function measure({ folder, name, size, pauseMs }) {
  const child = spawn(process.execPath, [__filename, 'serve', folder, name, String(pauseMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const port = Number(await new Promise((resolve) => child.stdout.once('data', resolve)));
    return await send(port, size);
  } finally {
    child.kill();
  }
}

function send(port, size) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
    const request = http.request({ port, method: 'POST', headers }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve(JSON.parse(text)));
    });
    request.on('error', reject);
    const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n`;
    request.write(head);
    let left = (size * MIB) / CHUNK.length;
    const more = () => {
      while (left-- > 0) {
        if (!request.write(CHUNK)) return request.once('drain', more);
      }
      request.end(`\r\n--${BOUNDARY}--\r\n`);
    };
    more();
  });
}

function serve(folder, name, pauseMs) {
  const read = readers.of(folder)[name];
  const server = http.createServer(async (request, response) => {
    const hash = createHash('sha256');
    let bytes = 0;
    const before = process.memoryUsage.rss();
    let peak = before;
    const cpu = process.cpuUsage();
    const startedAt = performance.now();
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20);
    await read(request, request.headers['content-type'], async (chunk) => {
      bytes += chunk.length;
      hash.update(chunk);
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    });
    clearInterval(timer);
    const { user, system } = process.cpuUsage(cpu);
    const seconds = (performance.now() - startedAt) / 1000;
    const mibPerSec = bytes / MIB / seconds;
    const cpuMs = (user + system) / 1000;
    response.end(JSON.stringify({ mibPerSec, cpuMs, peakMib: (peak - before) / MIB }));
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
}

/** The entries that a reader finds, or why it refuses the form. */
async function outcome(read, bytes) {
  const { Readable } = require('node:stream');
  const source = Readable.from([bytes.subarray(0, 40), bytes.subarray(40)]);
  const timeout = new Promise((resolve) => setTimeout(resolve, 1000, 'never ends').unref());
  const result = read(source, `multipart/form-data; boundary=${BOUNDARY}`, async () => undefined)
    .then((entries) => `accepts ${JSON.stringify(entries)}`)
    .catch((error) => `refuses: ${error.message}`);
  const text = await Promise.race([result, timeout]);
  return text.length > 150 ? `${text.slice(0, 150)}…` : text;
}

if (process.argv[2] === 'serve') serve(process.argv[3], process.argv[4], Number(process.argv[5]));
else
  main().then(
    () => process.exit(0),
    (error) => {
      console.error(`${path.basename(__filename)}: ${error.message}`);
      process.exit(1);
    },
  );
