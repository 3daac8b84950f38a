'use strict';

/** Row A4: what a user notices of a batch that would use every slot. */
const { pause } = require('../api-client');
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL } = require('../audio/audio-worker');
const { WORKER_TOKEN } = require('../audio/gateway');
const { formOf, recording } = require('../audio/recordings');
const { expectOk } = require('../audio/rest-calls');
const { calmRuns } = require('../calm');
const { quantile, rounded } = require('../figures');
const { atLeast, atMost } = require('../verdicts');

const REALTIME = { 'x-gateway-inference-objective': 'realtime' };
const LINE = { authorization: `Bearer ${WORKER_TOKEN}` };

const CALL_MS = 200;
const WORKERS = 2;
const SLOTS = 2;
const PAUSE_MS = 50;
/** As many lines are open as the documentation advises: twice the slots. */
const LINES_OPEN = 2 * WORKERS * SLOTS;
const SETTLE_MS = 1_000;

/** @returns {Promise<import('../report').Result>} */
async function usersBesideLines(bench) {
  const worker = { slots: SLOTS, base_ms: CALL_MS };
  const workers = Array.from({ length: WORKERS }, () => worker);
  const runs = await inAudioScene(bench, { workers }, (scene) =>
    calmRuns(bench, () => scene.observed(() => besideLines(scene))),
  );
  const of = (column) => runs.map((run) => run[column]);
  return {
    ...{ row: 'A4', title: 'one REALTIME caller beside a batch that saturates the workers', runs },
    verdicts: [
      atMost('p99, to alone', of('p99, to alone'), { unit: 'x', must: 1.25, aim: 1.1 }),
      atLeast('idle capacity used', of('idle used, %'), {
        unit: ' %',
        must: 85,
        aim: 92,
        digits: 1,
      }),
    ],
  };
}

/** Windows alone and beside the batch in turns. */
async function besideLines({ rest, bench }) {
  const windowMs = bench.quick ? 10_000 : 20_000;
  const form = formOf(recording(8_192), { model: MODEL });
  const found = { alone: [], beside: [], lines: 0 };
  for (let turn = 0; turn < (bench.quick ? 1 : 3); turn++) {
    found.alone.push(...(await realtimeTimes(rest, form, windowMs)));
    const batch = startLines(rest, form);
    await pause(SETTLE_MS);
    const before = batch.ended;
    found.beside.push(...(await realtimeTimes(rest, form, windowMs)));
    found.lines += batch.ended - before;
    await batch.stop();
  }
  const turns = bench.quick ? 1 : 3;
  const idleMs = WORKERS * SLOTS * windowMs * turns - found.beside.length * CALL_MS;
  const p99 = (times) => quantile(times, 0.99);
  return {
    'alone p99, ms': rounded(p99(found.alone), 1),
    'beside p99, ms': rounded(p99(found.beside), 1),
    'p99, to alone': rounded(p99(found.beside) / p99(found.alone), 2),
    'idle used, %': rounded((found.lines * CALL_MS * 100) / idleMs, 1),
    'REALTIME calls': found.beside.length,
  };
}

/** Times of one REALTIME caller that makes a call, pauses, and makes the next one. */
async function realtimeTimes(rest, form, windowMs) {
  const untilMs = performance.now() + windowMs;
  const times = [];
  while (performance.now() < untilMs) {
    times.push(expectOk(await rest.transcribe(form, { headers: REALTIME })).ms);
    await pause(PAUSE_MS);
  }
  return times;
}

/** A batch without an end. */
function startLines(rest, form) {
  let isOver = false;
  const batch = { ended: 0 };
  const lane = async () => {
    for (; !isOver; batch.ended++) expectOk(await rest.transcribe(form, { headers: LINE }));
  };
  const lanes = Promise.all(Array.from({ length: LINES_OPEN }, lane));
  // It is awaited at the end.
  lanes.catch(() => undefined);
  return Object.assign(batch, {
    async stop() {
      isOver = true;
      await lanes;
    },
  });
}

module.exports = { usersBesideLines };
