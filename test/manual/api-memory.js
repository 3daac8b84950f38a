'use strict';

/**
 * How much the memory of an API grows while files of 500 MB go up (with a length, chunked, in parts)
 * and 1 GB comes down (fast, slowly, four times at once); no part of `npm test`, for it takes minutes
 * and 3 GB on disk. Says what a process has cost that did nothing before: start it anew each time.
 *
 *     npm start                                    # in another terminal
 *     node test/manual/api-memory.js --pid PID     # PID of the API (`run/processes.json`)
 */
const fs = require('node:fs');
const http = require('node:http');
const { setTimeout: delay } = require('node:timers/promises');
const { parseArgs } = require('node:util');

const MIB = 1024 ** 2;
const SAMPLE_EVERY_MS = 20;
const SLOW_BYTES_PER_SEC = 100e6;
const BOUNDARY = 'xxBOUNDARYxx';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8000/v1' },
    pid: { type: 'string' },
  },
});
const key = process.env.OPENAI_API_KEY ?? 'none';

async function main() {
  const made = [];
  const upload = (name, options) =>
    watched(name, async () => made.push((await send('/files', options)).id));
  const jsonl = batchBlock();
  await upload('500 MB of JSONL, with a length', { block: jsonl, purpose: 'batch' });
  await upload('500 MB of JSONL, chunked', { block: jsonl, purpose: 'batch', isChunked: true });
  await upload('500 MB of bytes, with a length', { block: Buffer.alloc(MIB, 7) });
  let large;
  await watched('1 GB in 16 parts, 8 at once, and their join', async () => {
    made.push((large = await inParts(16)));
  });
  const download = async (bytesPerSec) => {
    const bytes = await receive(`/files/${large}/content`, bytesPerSec);
    if (bytes !== 1024 * MIB) throw new Error(`got ${bytes} bytes`);
  };
  await watched('1 GB down, fast', () => download(Infinity));
  await watched('1 GB down, 100 MB/s', () => download(SLOW_BYTES_PER_SEC));
  await watched('1 GB down, four at once', () =>
    Promise.all(Array.from({ length: 4 }, () => download(Infinity))),
  );
  for (const id of made) await call('DELETE', `/files/${id}`);
}

async function watched(name, work) {
  await delay(1_000);
  const before = rssMb();
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, rssMb())), SAMPLE_EVERY_MS);
  const startedAt = performance.now();
  await work().finally(() => clearInterval(timer));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const grown = (peak - before).toFixed(1);
  console.log(`${name}: ${before.toFixed(1)} MB, ${grown} MB more at the peak, ${seconds} s`);
}

function rssMb() {
  const status = fs.readFileSync(`/proc/${values.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) / 1024;
}

function batchBlock() {
  const body = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(3_000) }] };
  const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body };
  return Buffer.from(`${JSON.stringify(line)}\n`.repeat(320));
}

async function inParts(count) {
  const bytes = count * 64 * MIB;
  const asked = { filename: 'large', purpose: 'user_data', bytes, mime_type: 'x/y' };
  const { id } = await call('POST', '/uploads', asked);
  const ids = new Array(count);
  let next = 0;
  const block = Buffer.alloc(MIB, 7);
  const worker = async () => {
    for (let i = next++; i < count; i = next++) {
      ids[i] = (await send(`/uploads/${id}/parts`, { field: 'data', block, bytes: 64 * MIB })).id;
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return (await call('POST', `/uploads/${id}/complete`, { part_ids: ids })).file.id;
}

/** Sends a form whose file is a block again and again. */
async function send(path, options) {
  const { field = 'file', block, purpose = 'user_data', isChunked, bytes = 500 * MIB } = options;
  const head = Buffer.concat([
    Buffer.from(field === 'file' ? part('purpose', purpose) : ''),
    Buffer.from(`${part(field, '', 'large.jsonl')}`.slice(0, -2)),
  ]);
  const tail = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
  const blocks = Math.floor(bytes / block.length);
  const length = head.length + blocks * block.length + tail.length;
  const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
  if (isChunked !== true) headers['content-length'] = length;
  const { request, answer } = open('POST', path, headers);
  request.write(head);
  for (let i = 0; i < blocks; i++) {
    if (!request.write(block)) await new Promise((resolve) => request.once('drain', resolve));
  }
  request.end(tail);
  return parsed(await answer);
}

function part(name, value, filename) {
  const file = filename === undefined ? '' : `; filename="${filename}"`;
  return `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
}

async function call(method, path, body) {
  const { request, answer } = open(method, path, { 'content-type': 'application/json' });
  request.end(body === undefined ? '' : JSON.stringify(body));
  return parsed(await answer);
}

async function receive(path, bytesPerSec) {
  const { request, answer } = open('GET', path, {});
  request.end();
  let bytes = 0;
  for await (const chunk of await answer) {
    bytes += chunk.length;
    if (bytesPerSec < Infinity) await delay((chunk.length / bytesPerSec) * 1000);
  }
  return bytes;
}

function open(method, path, headers) {
  const options = { method, headers: { authorization: `Bearer ${key}`, ...headers } };
  const request = http.request(`${values.url}${path}`, options);
  const answer = new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  });
  return { request, answer };
}

async function parsed(response) {
  const chunks = [];
  for await (const chunk of response) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${text}`);
  return JSON.parse(text);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
