'use strict';

/**
 * The durable peer: a job for each line in graphile-worker, tuned as its manual says (a local queue,
 * batched completes), the result kept in a table. Prints `{"seconds": …, "enqueueSeconds": …}` of the
 * second file; the first one warms up. The time of enqueueing is part of the whole, as reading a file
 * is part of a batch.
 *
 * node job-queue.js <warm-up> <input> <postgres url of a database of its own> <origin> <in flight>
 */
const fs = require('node:fs');
const { createInterface } = require('node:readline');
const { run } = require('graphile-worker');
const { Pool } = require('pg');
const { createSender } = require('./answer-of');

const LOCAL_QUEUE = 500;
const COMPLETE_DELAY_MS = 100;
const POOL_SIZE = 16;
const JOBS_AT_ONCE = 1_000;
const ADD_JOBS = `
  select from graphile_worker.add_jobs(array(
    select json_populate_record(null::graphile_worker.job_spec, job) from json_array_elements($1) job
  ))`;
const KEEP = 'insert into answers (input, line, result) values ($1, $2, $3)';
const TABLE = `
  create table answers (
    input text not null, line bigint not null, result text not null, primary key (input, line)
  )`;

async function main([warmUp, input, connectionString, origin, inFlight]) {
  const sender = createSender({ origin, inFlight: Number(inFlight) });
  const pool = new Pool({ connectionString, max: POOL_SIZE });
  await pool.query(TABLE);
  const countdown = createCountdown();
  const runner = await run({
    pgPool: pool,
    taskList: { line: createTask(sender, countdown) },
    noHandleSignals: true,
    preset: {
      worker: {
        concurrentJobs: Number(inFlight),
        localQueue: { size: LOCAL_QUEUE },
        completeJobBatchDelay: COMPLETE_DELAY_MS,
      },
    },
    logger: quietLogger(),
  });
  await batch(pool, warmUp, countdown);
  const startedMs = performance.now();
  const enqueueSeconds = await batch(pool, input, countdown);
  await runner.stop();
  const seconds = (performance.now() - startedMs) / 1000;
  process.stdout.write(`${JSON.stringify({ seconds, enqueueSeconds })}\n`);
  await sender.close();
  await pool.end();
}

/** Reads a line, has it answered and keeps the result. */
function createTask(sender, countdown) {
  const files = new Map();
  return async ({ input, offset, length }, { query }) => {
    if (!files.has(input)) files.set(input, fs.openSync(input, 'r'));
    const bytes = Buffer.allocUnsafe(length);
    fs.readSync(files.get(input), bytes, 0, length, offset);
    await query(KEEP, [input, offset, await sender.answer(bytes.toString())]);
    countdown.one();
  };
}

/** Ends `until(total)` when `one` was called as often; both may come first. */
function createCountdown() {
  let [done, total, finish] = [0, Infinity, () => undefined];
  const check = () => done === total && finish();
  return {
    one() {
      done++;
      check();
    },
    async until(count) {
      await new Promise((resolve) => {
        [total, finish] = [count, resolve];
        check();
      });
      [done, total] = [0, Infinity];
    },
  };
}

/** Runs a whole file. @returns {Promise<number>} seconds until all its lines were in the queue */
async function batch(pool, input, countdown) {
  const startedMs = performance.now();
  const total = await enqueue(pool, input);
  const seconds = (performance.now() - startedMs) / 1000;
  await countdown.until(total);
  return seconds;
}

function quietLogger() {
  const { Logger } = require('graphile-worker');
  return new Logger(() => (level, message) => {
    if (level === 'error') process.stderr.write(`${message}\n`);
  });
}

/** @returns {Promise<number>} how many lines there are */
async function enqueue(pool, input) {
  let offset = 0;
  let total = 0;
  let jobs = [];
  const flush = async () => {
    await pool.query(ADD_JOBS, [JSON.stringify(jobs)]);
    jobs = [];
  };
  for await (const text of createInterface({ input: fs.createReadStream(input) })) {
    const length = Buffer.byteLength(text);
    jobs.push({ identifier: 'line', payload: { input, offset, length } });
    offset += length + 1;
    total++;
    if (jobs.length === JOBS_AT_ONCE) await flush();
  }
  if (jobs.length > 0) await flush();
  return total;
}

void main(process.argv.slice(2));
