'use strict';

/**
 * What an installation needs: disk by kind of object, connections to PostgreSQL, load on Temporal, and
 * memory of a worker. The figures of docs/sizing.md.
 */
const { expectComplete } = require('../api-client');
const { disturbance, rounded } = require('../figures');
const { connect, processorSec, stores } = require('../footprint');
const { inputFile } = require('../input-files');
const { memoryMb } = require('../process-stats');
const { inScene } = require('../scene');
const { eventsOf } = require('../temporal-events');

const IN_FLIGHT = 256;
const LATENCY_MS = 50;
const SAMPLE_MS = 250;
const MB = 1e6;
const SETTINGS = {
  concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
  limits: { max_requests: 2_000_000, max_file_bytes: '2GiB' },
};
/** Each of them holds a chunk, so half of the default slots of a worker are in use. */
const OPEN_BATCHES = 50;
const OPEN_LINES = 100;
const SLOW_MS = 2_000;

/** @returns {Promise<import('../report').Result>} */
async function sizing(bench) {
  const runs = await inScene({ bench, settings: SETTINGS, warm: false }, async (scene) => {
    const clients = await connect(scene.product);
    try {
      const idle = memoryOf(scene.product);
      return [
        ...idle,
        ...(await openBatches(scene, clients)),
        ...(await largeBatch(scene, clients)),
        ...(await manyBatches(scene, clients)),
      ];
    } finally {
      await clients.close();
    }
  });
  return { row: 'sizing', title: 'what an installation needs', verdicts: [], runs };
}

function memoryOf({ pidOf }) {
  return [
    figure('worker, idle', memoryMb(pidOf('worker')).now, 'MB'),
    figure('API, idle', memoryMb(pidOf('api')).now, 'MB'),
  ];
}

/** Memory while many chunks share few answers. */
async function openBatches({ bench, client, mock, product }, clients) {
  const file = await inputFile(bench.scratch, { lines: OPEN_LINES });
  const fileId = await client.upload(file);
  await mock.reset({ latencyMs: SLOW_MS });
  const peak = sampled(product, clients);
  const ids = await client.createMany(fileId, OPEN_BATCHES);
  for (const id of ids) await client.ended(id, { timeoutMs: 300_000 });
  const { connections, workerMb } = await peak.end();
  return [
    figure(
      `worker, peak with ${OPEN_BATCHES} open batches, ${IN_FLIGHT} in flight`,
      workerMb,
      'MB',
    ),
    ...connections.map(([name, count]) =>
      figure(`connections, ${name}, ${OPEN_BATCHES} batches`, count, ''),
    ),
  ];
}

/** Disk, rows and processor time of one large batch, per million lines. */
async function largeBatch(scene, clients) {
  const { bench, product } = scene;
  const lines = bench.quick ? 100_000 : 500_000;
  const file = await inputFile(bench.scratch, { lines });
  const before = await stores(product, clients);
  const peak = sampled(product, clients);
  const run = await scene.run({
    file,
    lines,
    latencyMs: LATENCY_MS,
    timeoutMs: 60_000 + lines * 2,
  });
  const { connections, workerMb } = await peak.end();
  const after = await stores(product, clients);
  const perMillion = (key) => ((after[key] - before[key]) / MB / lines) * 1e6;
  const kinds = Object.keys(after.objects).sort();
  return [
    ...kinds.map((kind) => {
      const bytes = after.objects[kind] - (before.objects[kind] ?? 0);
      return figure(`disk per million lines, ${kind}`, (bytes / MB / lines) * 1e6, 'MB');
    }),
    figure('PostgreSQL per million lines', perMillion('postgres'), 'MB'),
    figure('Temporal database per million lines', perMillion('temporal'), 'MB'),
    figure(`worker, peak with ${lines} lines, ${IN_FLIGHT} in flight`, workerMb, 'MB'),
    figure('API, after the batch', memoryMb(product.pidOf('api')).now, 'MB'),
    figure('lines/s', lines / (run.createToCompletedMs / 1000), ''),
    ...connections.map(([name, count]) =>
      figure(`connections, ${name}, one large batch`, count, ''),
    ),
    ...disturbances(run.usage, 'one large batch'),
  ];
}

/** What batches cost Temporal and PostgreSQL beside their lines, per thousand batches. */
async function manyBatches({ bench, client, mock, observe, product }, clients) {
  const batches = bench.quick ? 200 : 1_000;
  const fileId = await client.upload(await inputFile(bench.scratch, { lines: 1 }));
  await mock.reset({ latencyMs: LATENCY_MS });
  const before = { ...(await stores(product, clients)), ...processorSec(product) };
  const observation = observe();
  const startedMs = performance.now();
  const ids = await client.createMany(fileId, batches);
  for (const id of ids) expectComplete((await client.ended(id, { timeoutMs: 300_000 })).batch, 1);
  const tookSec = (performance.now() - startedMs) / 1000;
  const usage = observation.end();
  const after = { ...(await stores(product, clients)), ...processorSec(product) };
  const per = (key, unit = 1) => ((after[key] - before[key]) / unit / batches) * 1000;
  const events = await eventsOf(clients.temporal, ids.slice(0, 20));
  return [
    figure(`${batches} batches of one line, all completed`, tookSec, 's'),
    figure('Temporal database per 1,000 batches', per('temporal', MB), 'MB'),
    figure('PostgreSQL per 1,000 batches', per('postgres', MB), 'MB'),
    figure('processor time of Temporal per 1,000 batches', per('temporalSec'), 's'),
    figure('processor time of PostgreSQL per 1,000 batches', per('postgresSec'), 's'),
    figure('processor time of the worker per 1,000 batches', per('workerSec'), 's'),
    figure('processor time of the API per 1,000 batches', per('apiSec'), 's'),
    ...events.map(({ what, mean }) => figure(`a batch of one line: ${what}`, mean, '')),
    ...disturbances(usage, `${batches} batches`),
  ];
}

/** Highest number of connections by application, and of the worker's memory, until `end`. */
function sampled({ pidOf }, { postgres }) {
  const highest = new Map();
  let workerMb = 0;
  let going = true;
  const raise = (name, count) => highest.set(name, Math.max(highest.get(name) ?? 0, count));
  const loop = async () => {
    while (going) {
      const { rows } = await postgres.query(
        `select application_name as name, count(*)::int as count from pg_stat_activity
         where backend_type = 'client backend' and application_name <> 'bench' group by 1`,
      );
      for (const { name, count } of rows) raise(name, count);
      workerMb = Math.max(workerMb, memoryMb(pidOf('worker')).now);
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    }
  };
  const done = loop();
  return {
    async end() {
      going = false;
      await done;
      return { connections: [...highest].sort(), workerMb };
    },
  };
}

/** What other programs used meanwhile: seconds of processor time and memory are only exact without them. */
function disturbances(usage, during) {
  return Object.entries(disturbance(usage)).map(([what, value]) =>
    figure(`${what}, ${during}`, value, ''),
  );
}

function figure(what, value, unit) {
  return { what, value: rounded(value, value < 10 ? 2 : 0), unit };
}

module.exports = { sizing };
