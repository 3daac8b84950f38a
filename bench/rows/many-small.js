'use strict';

/** Row many: what a small batch costs each part, in a thousand batches of five lines. */
const { expectComplete, nowMs } = require('../api-client');
const { calmRuns } = require('../calm');
const { disturbance, rounded } = require('../figures');
const { connect, processorSec, rowsStored, transactions } = require('../footprint');
const { inputFile } = require('../input-files');
const { barPlot } = require('../plots/plot');
const { inScene } = require('../scene');
const { summarize } = require('../summary');
const { eventsOf } = require('../temporal-events');
const { atLeast } = require('../verdicts');

const LINES = 5;
/** Pause between two looks at the batch that is awaited: each look takes processor time from what is measured. */
const ASK_EVERY_MS = 200;
const TIMEOUT_MS = 600_000;
/** Histories are much alike, and each is a call. */
const HISTORIES = 50;
const PARTS = {
  worker: 'workerSec',
  Temporal: 'temporalSec',
  PostgreSQL: 'postgresSec',
  API: 'apiSec',
};
const COLUMNS = {
  'batches/s': 1,
  'CPU, ms/batch': 1,
  'events/batch': 1,
  'workflow tasks/batch': 1,
  'transactions/batch': 1,
  'rows/batch': 1,
};

/** With the limits as they are shipped. @returns {Promise<import('../report').Result>} */
async function manySmall(bench) {
  const batches = bench.quick ? 200 : 1_000;
  const file = await inputFile(bench.scratch, { lines: LINES });
  const runs = await inScene({ bench }, async (scene) => {
    const clients = await connect(scene.product);
    try {
      return await calmRuns(bench, () => allAtOnce(scene, { clients, file, batches }));
    } finally {
      await clients.close();
    }
  });
  const perSec = runs.map((run) => run['batches/s']);
  const title = `${batches} batches of ${LINES} lines`;
  const columns = {
    ...COLUMNS,
    ...Object.fromEntries(Object.keys(PARTS).map((p) => [cpuOf(p), 1])),
  };
  return {
    row: 'many',
    title,
    verdicts: [atLeast('batches a second', perSec, { unit: '', digits: 1, must: 20 })],
    runs,
    summary: summarize(runs, { by: ['batches'], columns }, bench),
    plot: plotOf(runs, title, bench),
  };
}

async function allAtOnce({ client, mock, product, observe }, { clients, file, batches }) {
  const fileId = await client.upload(file);
  await mock.reset();
  const look = async () => ({
    rows: await rowsStored(clients),
    transactions: await transactions(clients),
    ...processorSec(product),
  });
  const before = await look();
  const observation = observe();
  const startedMs = nowMs();
  const ids = await client.createMany(fileId, batches);
  const createdMs = nowMs();
  // One after another: who ended before it is asked answers at once.
  for (const id of ids) {
    const { batch } = await client.ended(id, { everyMs: ASK_EVERY_MS, timeoutMs: TIMEOUT_MS });
    expectComplete(batch, LINES);
  }
  const tookSec = (nowMs() - startedMs) / 1000;
  const usage = observation.end();
  const cpu = processorSec(product);
  const after = await look();
  const history = await eventsOf(clients.temporal, ids.slice(0, HISTORIES));
  const per = (key) => rounded((after[key] - before[key]) / batches, 1);
  const cpuMs = (name) => rounded(((cpu[name] - before[name]) * 1000) / batches, 1);
  const mean = (what) => history.find((one) => one.what === what).mean;
  return {
    batches,
    'created, s': rounded((createdMs - startedMs) / 1000, 2),
    'completed, s': rounded(tookSec, 2),
    'batches/s': rounded(batches / tookSec, 1),
    'CPU, ms/batch': rounded(
      Object.values(PARTS).reduce((sum, name) => sum + cpuMs(name), 0),
      1,
    ),
    ...Object.fromEntries(Object.entries(PARTS).map(([part, name]) => [cpuOf(part), cpuMs(name)])),
    'events/batch': mean('history events'),
    'workflow tasks/batch': mean('workflow tasks'),
    'activities/batch': mean('activities'),
    'transactions/batch': per('transactions'),
    'rows/batch': per('rows'),
    ...disturbance(usage),
  };
}

function cpuOf(part) {
  return `${part}, ms/batch`;
}

function plotOf(runs, title, bench) {
  const parts = runs.flatMap((run) =>
    Object.keys(PARTS).map((who) => ({ ...run, who, ms: run[cpuOf(who)] })),
  );
  const shape = {
    title: `CPU of a batch: ${title}`,
    unit: 'ms',
    value: 'ms',
    group: () => 'processor time',
  };
  return barPlot(parts, shape, bench);
}

module.exports = { manySmall };
