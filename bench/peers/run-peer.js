'use strict';

/** Starts the peers as processes of their own and measures them as Nightshift is measured. */
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { disturbance, rounded } = require('../figures');
const { watch } = require('../process-stats');

const TIMEOUT_MS = 900_000;
const execute = promisify(execFile);

/** @param {object} scene its Postgres, idle meanwhile, is the peer's too */
function createPeers(scene, inFlight) {
  const { bench, mock, product } = scene;
  const origin = mock.url;
  return {
    /** @param {{ file: string, lines: number }} input */
    async plainLoop({ file, lines }) {
      const output = path.join(bench.scratch, `plain-loop-${process.pid}.jsonl`);
      const args = [file, output, origin, inFlight];
      const run = await measured(scene, { script: 'plain-loop.js', args, lines });
      fs.rmSync(output, { force: true });
      return run;
    },
    /** @param {{ file: string, lines: number }} input */
    async jobQueue({ file, lines }) {
      return inDatabase(product.postgresUrl, (url) =>
        measured(scene, { script: 'job-queue.js', args: [file, url, origin, inFlight], lines }),
      );
    },
  };

  async function measured({ mock: server }, { script, args, lines }) {
    await server.reset();
    const observation = watch({ roots: [...product.pids, mock.pid], memoryOf: process.pid });
    const { stdout } = await execute(
      process.execPath,
      [path.join(__dirname, script), ...args.map(String)],
      { timeout: TIMEOUT_MS },
    );
    const usage = observation.end();
    const { seconds } = JSON.parse(stdout);
    const { answered } = await server.stats();
    if (answered !== lines) throw new Error(`${script} got ${answered} answers for ${lines} lines`);
    return {
      'lines/s': rounded(lines / seconds),
      'sending alone, lines/s': '',
      'cores used': rounded(usage.oursCores, 2),
      'worker, us/line': '',
      ...disturbance(usage),
    };
  }
}

/** A database beside Nightshift's for as long as `work` takes. */
async function inDatabase(postgresUrl, work) {
  const { Client } = require('pg');
  const name = `bench_${process.pid}_${Date.now()}`;
  const admin = new Client({ connectionString: postgresUrl });
  await admin.connect();
  try {
    await admin.query(`create database ${name}`);
    const url = new URL(postgresUrl);
    url.pathname = `/${name}`;
    return await work(url.href);
  } finally {
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
  }
}

module.exports = { createPeers };
