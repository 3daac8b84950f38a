'use strict';

/**
 * The durable peer: a job for each line in graphile-worker, tuned as its manual says (a local queue,
 * batched completes), the result kept in a table. Prints `{"seconds": …, "enqueueSeconds": …}`; the
 * time of enqueueing is part of the whole, as reading a file is part of a batch.
 *
 * node job-queue.js <input> <postgres url of a database of its own> <origin> <in flight>
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
const KEEP = 'insert into answers (line, result) values ($1, $2)';

async function main([input, connectionString, origin, inFlight]) {
  const sender = createSender({ origin, inFlight: Number(inFlight) });
  const pool = new Pool({ connectionString, max: POOL_SIZE });
  const fd = fs.openSync(input, 'r');
  await pool.query('create table answers (line bigint primary key, result text not null)');
  let done = 0;
  let total = Infinity;
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const line = async ({ offset, length }, { query }) => {
    const bytes = Buffer.allocUnsafe(length);
    fs.readSync(fd, bytes, 0, length, offset);
    await query(KEEP, [offset, await sender.answer(bytes.toString())]);
    if (++done === total) finish();
  };
  const runner = await run({
    pgPool: pool,
    taskList: { line },
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
  const startedMs = performance.now();
  total = await enqueue(pool, input);
  const enqueueSeconds = (performance.now() - startedMs) / 1000;
  if (done < total) await finished;
  await runner.stop();
  const seconds = (performance.now() - startedMs) / 1000;
  process.stdout.write(`${JSON.stringify({ seconds, enqueueSeconds })}\n`);
  await sender.close();
  await pool.end();
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
    jobs.push({ identifier: 'line', payload: { offset, length } });
    offset += length + 1;
    total++;
    if (jobs.length === JOBS_AT_ONCE) await flush();
  }
  if (jobs.length > 0) await flush();
  return total;
}

void main(process.argv.slice(2));
