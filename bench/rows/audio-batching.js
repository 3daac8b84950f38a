'use strict';

/** Row A3: what a worker gains that takes several recordings in a call, and what a lone request pays for it. */
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL } = require('../audio/audio-worker');
const { formOf, recording } = require('../audio/recordings');
const { expectOk, timingOf } = require('../audio/rest-calls');
const { calmRuns } = require('../calm');
const { median, rounded } = require('../figures');
const { atLeast, atMost } = require('../verdicts');

const BASE_MS = 100;
const ITEM_MS = 10;
const CLIENTS = 32;
const MAX_BATCH = 8;
/** Until a queue has built up. */
const WARM_UP_MS = 2_000;

/** @returns {Promise<import('../report').Result>} */
async function batching(bench) {
  const runs = await calmRuns(bench, async () => {
    const one = await withBatches(bench, 1);
    const many = await withBatches(bench, MAX_BATCH);
    return {
      ...{ 'single/s': one.rate, 'batches/s': many.rate, rate: rounded(many.rate / one.rate, 2) },
      ...{ 'mean size': many.size, 'lone wait 1, ms': one.waitMs, 'lone wait 8, ms': many.waitMs },
      load1: many.load1,
      'others, cores': Math.max(one['others, cores'], many['others, cores']),
    };
  });
  const title = `calls of ${BASE_MS} ms and ${ITEM_MS} ms per recording, one slot, ${CLIENTS} clients`;
  return { row: 'A3', title, verdicts: judge(runs), runs };
}

function withBatches(bench, maxBatch) {
  const workers = [{ slots: 1, base_ms: BASE_MS, item_ms: ITEM_MS, maxBatch }];
  return inAudioScene(bench, { workers }, (scene) => scene.observed(() => measured(scene)));
}

async function measured({ rest, gateway, bench }) {
  const form = formOf(recording(8_192), { model: MODEL });
  const send = async () => expectOk(await rest.transcribe(form));
  const waits = [];
  for (let i = 0; i < (bench.quick ? 10 : 30); i++) waits.push(timingOf(await send(), 'queue'));
  const sizes = async () => ({
    calls: await gateway.metric('scheduler_batch_size_count'),
    items: await gateway.metric('scheduler_batch_size_sum'),
  });
  const windowMs = bench.quick ? 8_000 : 20_000;
  const startMs = performance.now();
  const [fromMs, untilMs] = [startMs + WARM_UP_MS, startMs + WARM_UP_MS + windowMs];
  const before = await sizes();
  let ended = 0;
  const client = async () => {
    while (performance.now() < untilMs) {
      const { atMs } = await send();
      if (atMs >= fromMs && atMs < untilMs) ended++;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const after = await sizes();
  return {
    rate: rounded(ended / (windowMs / 1_000), 1),
    size: rounded((after.items - before.items) / (after.calls - before.calls), 2),
    waitMs: rounded(median(waits), 1),
  };
}

function judge(runs) {
  const of = (column) => runs.map((run) => run[column]);
  return [
    atLeast(`rate with max_batch ${MAX_BATCH}, to 1`, of('rate'), { unit: 'x', must: 4, aim: 4.7 }),
    atLeast('mean size of a batch', of('mean size'), { unit: '', must: 6, aim: 7.5 }),
    atMost(`wait of a lone request, max_batch ${MAX_BATCH}`, of('lone wait 8, ms'), {
      ...{ unit: ' ms', must: 60 },
    }),
    atMost('wait of a lone request, max_batch 1', of('lone wait 1, ms'), { unit: ' ms', must: 1 }),
  ];
}

module.exports = { batching };
