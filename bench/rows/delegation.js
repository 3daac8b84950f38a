'use strict';

/** Rows D1, D2, D4 and D7: what a batch at a provider costs beyond the time of the provider. */
const { waitFor } = require('../api-client');
const { calmRuns } = require('../calm');
const { fileOf, inDelegatedScene, jobsSeen, withTemporal } = require('../delegated-scene');
const { disturbance, median, rounded } = require('../figures');
const { eventsOf } = require('../temporal-events');

const LINES = 50_000;
const CANCELLED_LINES = 2_000;
const TIMEOUT_MS = 60_000;
const KILOBYTE = 1_000;

/** @returns {Promise<import('../report').Result>} */
async function delegatedBatch(bench) {
  return inDelegatedScene({ bench }, async (scene) => {
    const runs = [];
    for (const model of ['one-part', 'five-parts']) {
      const file = await fileOf(bench, { model, lines: LINES });
      runs.push(...(await calmRuns(bench, () => wholeBatch(scene, file))));
    }
    const title = `${LINES} lines of 1 KiB at a provider that answers at once`;
    return { row: 'D1, D2, D4', title, verdicts: verdicts(runs), runs };
  });
}

async function wholeBatch(scene, file) {
  const run = await scene.runJobs({ file, lines: LINES });
  const means = await withTemporal(scene.product, (client) => eventsOf(client, [run.id]));
  const mean = (name) => means.find(({ what }) => what === name).mean;
  return {
    parts: run.parts,
    'create to last job, s': seconds(run.createToLastJobMs),
    'end seen to completed, s': seconds(run.endSeenToCompletedMs),
    'create to completed, s': seconds(run.createToCompletedMs),
    'worker, CPU s': rounded(run.usage.cpuSec, 1),
    'worker peak, MB': rounded(run.usage.peakMb),
    events: mean('history events'),
    'history, KB': rounded(mean('history bytes') / KILOBYTE, 1),
    ...disturbance(run.usage),
  };
}

function verdicts(runs) {
  const [one, five] = [1, 5].map((parts) => runs.filter((run) => run.parts === parts));
  const of = (some, column) => median(some.map((run) => run[column]));
  // What a further part adds, without the events that every batch has.
  const perPart = (column) => rounded((of(five, column) - of(one, column)) / 4, 1);
  const total = [one, five].map((some) => of(some, 'create to completed, s'));
  const after = [one, five].map((some) => of(some, 'end seen to completed, s'));
  const [events, bytes] = [perPart('events'), perPart('history, KB')];
  return [
    verdict('D1: create to completed, 1 / 5 parts', total, ['s', 25, 10]),
    verdict('D2: completed there to completed here, 1 / 5 parts', after, ['s', 8, 3]),
    verdict('D4: history events of a part', [events], ['', 40, 30]),
    verdict('D4: history of a part', [bytes], ['KB', 40, 25]),
  ];
}

/** Row D7. The interval between looks is 30 s, so that none of them helps. */
async function delegatedCancel(bench) {
  const file = await fileOf(bench, { model: 'slow-poll', lines: CANCELLED_LINES });
  return inDelegatedScene({ bench }, async (scene) => {
    const runs = await calmRuns(bench, () => cancelled(scene, file));
    const of = (column) => median(runs.map((run) => run[column]));
    const found = [
      verdict('D7: cancel to the cancel there', [of('to cancel there, s')], ['s', 3, 1]),
      verdict('D7: ended there to ended here', [of('ended there to ended here, s')], ['s', 10, 3]),
    ];
    return { row: 'D7', title: 'cancel of a batch at a provider', verdicts: found, runs };
  });
}

async function cancelled({ client, provider, observe }, file) {
  const fileId = await client.upload(file);
  provider.reset({ holds: true });
  const observation = observe();
  const { id } = await client.create(fileId);
  await jobsSeen(provider, 1);
  const [job] = provider.jobs;
  const { sentMs } = await client.cancel(id);
  const there = () => job.cancelledAtMs;
  const cancelledAtMs = await waitFor(there, { timeoutMs: TIMEOUT_MS, what: 'cancel' });
  const { batch, atMs } = await client.ended(id, { everyMs: 20, timeoutMs: TIMEOUT_MS });
  if (batch.status !== 'cancelled') throw new Error(`batch ${id} is ${batch.status}`);
  return {
    'to cancel there, s': seconds(cancelledAtMs - sentMs),
    'ended there to ended here, s': seconds(atMs - cancelledAtMs),
    ...disturbance(observation.end()),
  };
}

function verdict(what, values, [unit, must, aim]) {
  const limit = (bound) => `≤ ${bound} ${unit}`.trim();
  return {
    what,
    value: `${values.join(' / ')} ${unit}`.trim(),
    must: limit(must),
    aim: limit(aim),
    met: values.every((value) => value <= must),
  };
}

const seconds = (ms) => rounded(ms / 1000, 2);

module.exports = { delegatedBatch, delegatedCancel };
