'use strict';

/** Row A5: how long a request waits that all later ones would overtake, if it did not age. */
const { pause } = require('../api-client');
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL } = require('../audio/audio-worker');
const { formOf, recording } = require('../audio/recordings');
const { expectOk, timingOf } = require('../audio/rest-calls');
const { calmRuns } = require('../calm');
const { rounded } = require('../figures');
const { atMost } = require('../verdicts');

const REALTIME = { 'x-gateway-inference-objective': 'realtime' };
const SLOTS = 2;
const CALL_MS = 100;
const CAPACITY_PER_SEC = (SLOTS * 1_000) / CALL_MS;
const LOAD = 1.5;
const TICK_MS = 100;
const BATCH_REQUESTS = 10;
const BATCH_EVERY_MS = 500;
/** REALTIME requests wait by then. */
const QUEUE_BUILDS_UP_MS = 2_000;

/** @returns {Promise<import('../report').Result>} */
async function agedRequests(bench) {
  const agingMs = bench.quick ? 5_000 : 30_000;
  const audio = {
    scheduler: { aging_threshold: `${agingMs}ms` },
    fair_request_queue: { total_capacity: 10_000, flow_capacity: 10_000 },
  };
  const workers = [{ slots: SLOTS, base_ms: CALL_MS }];
  const runs = await calmRuns(bench, () =>
    inAudioScene(bench, { workers, audio }, (scene) => scene.observed(() => aged(scene))),
  );
  const must = (agingMs + TICK_MS + CALL_MS) / 1_000;
  return {
    row: 'A5',
    title: `BATCH requests under a REALTIME load of ${LOAD} times the capacity, aging after ${agingMs / 1_000} s`,
    verdicts: [
      atMost(
        'longest wait of a BATCH request',
        runs.map((run) => run['longest wait, s']),
        { unit: ' s', must },
      ),
    ],
    runs,
  };
}

async function aged({ rest, gateway }) {
  const form = formOf(recording(8_192), { model: MODEL });
  const load = startLoad(rest, form);
  await pause(QUEUE_BUILDS_UP_MS);
  const waits = [];
  const send = async () => {
    waits.push(timingOf(expectOk(await rest.transcribe(form)), 'queue') / 1_000);
  };
  const sent = [];
  for (let number = 0; number < BATCH_REQUESTS; number++) {
    sent.push(send());
    await pause(BATCH_EVERY_MS);
  }
  await Promise.all(sent);
  const promoted = await gateway.metric('scheduler_aging_promotions_total');
  load.stop();
  return {
    'shortest wait, s': rounded(Math.min(...waits), 2),
    'longest wait, s': rounded(Math.max(...waits), 2),
    promoted,
    'REALTIME requests waiting': await gateway.metric('scheduler_queue_depth', 'REALTIME'),
  };
}

/** REALTIME requests at fixed times, whether earlier ones have been answered or not. */
function startLoad(rest, form) {
  const startMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = ((performance.now() - startMs) / 1_000) * CAPACITY_PER_SEC * LOAD;
    for (; sent < due; sent++) {
      // Those that still wait at the end end with their connections.
      rest.transcribe(form, { headers: REALTIME }).catch(() => undefined);
    }
  }, 10);
  return { stop: () => clearInterval(timer) };
}

module.exports = { agedRequests };
