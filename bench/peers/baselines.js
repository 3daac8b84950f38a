'use strict';

/**
 * What a user would take instead of Nightshift, measured as it is: the same mock, the same lines, warmed up by a first
 * batch. Each is a process of its own.
 */
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { inputFile } = require('../input-files');
const { openBatchGateway, whyNoBatchGateway } = require('./batch-gateway');
const { createDatabase } = require('./database');
const { pythonEnvironment } = require('./python-environment');

/** As many as the shortest contest has. A worker's code is compiled by then. */
const WARM_UP_LINES = 20_000;
const MAX_OUTPUT_BYTES = 1 << 20;
const PYTHON_PACKAGES = path.join(__dirname, 'aiohttp-requirements.txt');
const execute = promisify(execFile);

/**
 * @typedef {object} Open a baseline that is ready
 * @property {(work: { file: string, lines: number, timeoutMs: number }) => Promise<number>} run seconds it took
 * @property {() => Promise<void>} close
 */

/** By name: `why` says why it is not there, `open` starts it. @type {Record<string, { why?: (bench: object) => string | null, open: (scene: object, inFlight: number) => Promise<Open> }>} */
const BASELINES = {
  'Go batch-gateway': { why: whyNoBatchGateway, open: openWarmGateway },
  'graphile-worker': { open: openJobQueue },
  'OpenAI SDK, p-limit': { open: nodeScript('sdk-loop.js') },
  'undici loop': { open: nodeScript('plain-loop.js') },
  'Python aiohttp': {
    why: () => python().missing ?? null,
    open: (scene, inFlight) => openScript(scene, inFlight, [python().python, 'aiohttp_loop.py']),
  },
};

const python = () => pythonEnvironment('bench-aiohttp', PYTHON_PACKAGES);

/**
 * Starts those of `names` that are there; says which are not.
 *
 * @param {object} scene
 * @param {{ inFlight: number, names?: string[] }} options
 * @returns {Promise<{ runs: Record<string, Open['run']>, close(): Promise<void> }>}
 */
async function openBaselines(scene, { inFlight, names = besides(scene.bench) }) {
  const open = {};
  const close = async () => {
    for (const one of Object.values(open)) await one.close();
  };
  try {
    for (const name of names) {
      const why = BASELINES[name].why?.(scene.bench) ?? null;
      if (why === null) open[name] = await BASELINES[name].open(scene, inFlight);
      else scene.bench.note(`without ${name}: ${why}`);
    }
  } catch (error) {
    await close();
    throw error;
  }
  const runs = Object.fromEntries(Object.entries(open).map(([name, { run }]) => [name, run]));
  return { runs, close };
}

/** Names of the baselines that were asked for; all by default. Throws for a name that is none. */
function besides({ beside }) {
  if (beside === undefined) return Object.keys(BASELINES);
  const names = beside.split(';').map((name) => name.trim());
  const unknown = names.find((name) => BASELINES[name] === undefined);
  if (unknown === undefined) return names;
  throw new Error(`no baseline ${unknown}; there are ${Object.keys(BASELINES).join('; ')}`);
}

async function openWarmGateway(scene, inFlight) {
  const gateway = await openBatchGateway(scene, inFlight);
  const lines = WARM_UP_LINES;
  const file = await warmUpFile(scene);
  await gateway.run({ file, lines, timeoutMs: 60_000 });
  return gateway;
}

function nodeScript(script) {
  return (scene, inFlight) => openScript(scene, inFlight, [process.execPath, script]);
}

/** A program that reads an input file, warms itself up and prints how long it took. */
async function openScript(scene, inFlight, [program, script]) {
  const { bench, mock } = scene;
  const output = path.join(bench.scratch, `baseline-${process.pid}.jsonl`);
  const warmUp = await warmUpFile(scene);
  return {
    async run({ file, lines, timeoutMs }) {
      const args = [warmUp, file, output, mock.url, inFlight];
      const seconds = await secondsOf([program, script], args, timeoutMs);
      fs.rmSync(output, { force: true });
      await expectAnswers(mock, { script, lines: lines + WARM_UP_LINES });
      return seconds;
    },
    close: async () => undefined,
  };
}

/** A fresh database for each run: the queue of the last one would weigh on the next. */
async function openJobQueue(scene, inFlight) {
  const { mock, product } = scene;
  const script = 'job-queue.js';
  const warmUp = await warmUpFile(scene);
  return {
    async run({ file, lines, timeoutMs }) {
      const database = await createDatabase(product.postgresUrl);
      try {
        const args = [warmUp, file, database.url, mock.url, inFlight];
        const seconds = await secondsOf([process.execPath, script], args, timeoutMs);
        await expectAnswers(mock, { script, lines: lines + WARM_UP_LINES });
        return seconds;
      } finally {
        await database.drop();
      }
    },
    close: async () => undefined,
  };
}

async function secondsOf([program, script], args, timeoutMs) {
  const { stdout } = await execute(program, [path.join(__dirname, script), ...args.map(String)], {
    timeout: timeoutMs,
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  return JSON.parse(stdout).seconds;
}

async function expectAnswers(mock, { script, lines }) {
  const { answered } = await mock.stats();
  if (answered !== lines) throw new Error(`${script} got ${answered} answers for ${lines} lines`);
}

/** A file of its own, because a queue tells files apart by their names. */
function warmUpFile({ bench }) {
  return inputFile(bench.scratch, { lines: WARM_UP_LINES, name: 'warm-up' });
}

module.exports = { besides, openBaselines, WARM_UP_LINES };
