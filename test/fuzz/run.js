'use strict';

/**
 * `npm run fuzz -- [--requests N] [--seed S] [--first I] [--keep] [--gateway]`: sends N random requests to a stack of
 * its own, or with `--gateway` to a gateway of its own (gateway/run.js). Every answer must be one of the contract, and afterwards nothing may be left that belongs to
 * nobody. What is sent depends on the seed and the request's index alone, but for the ids of objects:
 * `--seed S --first I --requests 1` sends the request I again.
 */
const { parseArgs } = require('node:util');
const { fuzzGateway } = require('./gateway/run.js');
const { judgeMemory, playAll } = require('./play.js');
const { randomFor } = require('./random.js');
const { makeRequest } = require('./requests.js');
const { startStack } = require('./stack.js');
const { batchFaultOf, faultOf, parsed, rawFaultOf } = require('./verdicts.js');
const { apiProcess, leftOvers } = require('./watch.js');
const { createWire } = require('./wire.js');
const { createWorld } = require('./world.js');
const { ensureBuilt, ensureInstalled } = require('../../cli/prepare.js');

const BATCHES_END_MS = 600_000;
/** Between the halves of a run; the heap's own ups and downs were 32 MB at most in 75,000 requests. */
const MOST_GROWTH_MB = 60;

function flags() {
  const { values } = parseArgs({
    options: {
      requests: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
      first: { type: 'string', default: '0' },
      keep: { type: 'boolean', default: false },
      gateway: { type: 'boolean', default: false },
    },
  });
  const number = (name) => {
    if (/^\d+$/.test(values[name])) return Number(values[name]);
    throw new Error(`--${name}: expected a whole number, got '${values[name]}'`);
  };
  const [requests, seed, first] = ['requests', 'seed', 'first'].map(number);
  return { requests, seed, first, keep: values.keep, gateway: values.gateway };
}

async function main() {
  ensureInstalled();
  ensureBuilt();
  const options = flags();
  console.log(
    `seed ${options.seed}, requests ${options.first} to ${options.first + options.requests - 1}`,
  );
  report(options.gateway ? await fuzzGateway(options) : await fuzzStack(options));
}

/** Sends requests to a whole stack; what is wrong, in words. */
async function fuzzStack(options) {
  const stack = await startStack();
  const run = { ...options, stack, wire: createWire(stack.baseUrl), world: createWorld() };
  Object.assign(run, { statuses: {}, faults: [], samples: [] });
  try {
    const before = apiProcess(stack.dataDir);
    await playAll(run, { sendOne, sample: () => apiProcess(stack.dataDir) });
    await endBatches(run);
    await judge(run, before);
  } finally {
    run.wire.close();
    await stack.stop({ keep: options.keep });
  }
  return run.faults;
}

function report(faults) {
  for (const fault of faults) console.log(`FAULT ${fault}`);
  console.log(faults.length === 0 ? 'nothing wrong' : `${faults.length} faults`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

async function sendOne(run, index) {
  const { world } = run;
  const request = makeRequest(randomFor(run.seed, index), world);
  if (request.kind === 'raw') {
    const fault = rawFaultOf(await run.wire.sendRaw(request));
    if (fault !== null) run.faults.push(`${index} raw: ${fault}`);
  } else if (request.kind === 'batch') {
    await sendBatch(run, index, request);
  } else {
    const answer = await ask(run, index, request);
    learn(world, answer);
  }
  for (const id of world.forgotten.splice(0)) {
    await ask(run, index, {
      kind: 'tidy',
      method: 'DELETE',
      path: `/v1/files/${id}`,
      headers: {},
      body: null,
    });
  }
}

async function ask(run, index, request) {
  const answer = await run.wire.send(request);
  const fault = faultOf(request, answer);
  if (fault !== null) run.faults.push(`${index} ${request.method} ${request.path}: ${fault}`);
  const name = `${request.kind} ${answer.status}`;
  run.statuses[name] = (run.statuses[name] ?? 0) + 1;
  return answer;
}

function learn(world, { status, body }) {
  const made = status === 200 ? parsed(body) : null;
  const kind = { file: 'file', upload: 'upload', 'upload.part': 'part', batch: 'batch' }[
    made?.object
  ];
  if (kind !== undefined && made.deleted !== true && !world.batches.has(made.id))
    world.add(kind, made.id);
}

async function sendBatch(run, index, { content, window, cancel }) {
  const parts = [
    '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
    '--b\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n',
  ];
  const body = Buffer.concat([Buffer.from(parts.join('')), content, Buffer.from('\r\n--b--\r\n')]);
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const form = { kind: 'upload', method: 'POST', path: '/v1/files', headers, body };
  const { id } = parsed((await ask(run, index, form)).body) ?? {};
  if (id === undefined) return;
  const asked = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: window };
  const create = { kind: 'create', method: 'POST', path: '/v1/batches', headers: {} };
  const answer = await ask(run, index, { ...create, body: Buffer.from(JSON.stringify(asked)) });
  learn(run.world, answer);
  const batch = parsed(answer.body)?.id;
  if (!cancel || batch === undefined) return;
  const path = `/v1/batches/${batch}/cancel`;
  await ask(run, index, { ...create, kind: 'cancel', path, body: Buffer.alloc(0) });
}

/** Every batch must end, for a reason that is its own. */
async function endBatches(run) {
  const untilMs = performance.now() + BATCHES_END_MS;
  const ends = {};
  for (const id of run.world.batches) {
    for (;;) {
      const look = { method: 'GET', path: `/v1/batches/${id}`, headers: {}, body: null };
      const batch = parsed((await run.wire.send(look)).body);
      const fault = batchFaultOf(batch);
      if (fault?.startsWith('still') && performance.now() < untilMs) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        continue;
      }
      if (fault !== null) run.faults.push(`${id}: ${fault}`);
      const name =
        batch.status === 'failed' ? `failed ${batch.errors?.data[0]?.code}` : batch.status;
      ends[name] = (ends[name] ?? 0) + 1;
      break;
    }
  }
  console.log(`batches: ${JSON.stringify(ends)}`);
}

async function judge(run, before) {
  const { stack, faults, statuses } = run;
  console.log(`answers: ${JSON.stringify(statuses)}`);
  const after = apiProcess(stack.dataDir);
  if (after.pid !== before.pid)
    faults.push(`the API ended and was started again:\n${stack.said()}`);
  const left = await leftOvers(stack.dataDir);
  if (left.length > 0)
    faults.push(`${left.length} objects of nobody: ${left.slice(0, 5).join(', ')}`);
  if (after.openFiles - before.openFiles > 30) {
    faults.push(`open files: ${before.openFiles} before, ${after.openFiles} after`);
  }
  console.log(
    `memory: ${before.rssMb?.toFixed(0)} MB before, ${after.rssMb?.toFixed(0)} MB after, open files ${before.openFiles} and ${after.openFiles}`,
  );
  if (before.rssMb !== null) judgeMemory(run, MOST_GROWTH_MB);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 2;
});
