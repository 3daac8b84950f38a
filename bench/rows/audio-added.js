'use strict';

/** Row A1: what the gateway adds to a transcription, beside the same call made directly. */
const { formOf, recording } = require('../audio/recordings');
const { expectOk } = require('../audio/rest-calls');
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL } = require('../audio/audio-worker');
const { calmRuns } = require('../calm');
const { median, quantile, rounded } = require('../figures');
const { atLeast, atMost } = require('../verdicts');

const BYTES = 32 * 1024;
const IN_FLIGHT = 32;
const TURN_MS = 1_000;
const WARM_UP_PAIRS = 300;
/** Of a worker that answers at once and never refuses. */
const WORKER = { slots: 2 * IN_FLIGHT };

/** @returns {Promise<import('../report').Result>} */
async function addedToCalls(bench) {
  const file = recording(BYTES);
  const form = formOf(file, { model: MODEL });
  const runs = await inAudioScene(bench, { workers: [WORKER] }, async (scene) => {
    const calls = {
      direct: () => scene.direct.transcribe(MODEL, file),
      gateway: async () => expectOk(await scene.rest.transcribe(form)).ms,
    };
    await inPairs(calls, WARM_UP_PAIRS);
    return calmRuns(bench, () => scene.observed(() => measured(calls, bench)));
  });
  return {
    row: 'A1',
    title: '32 KB WAV, a worker that answers at once',
    verdicts: judge(runs),
    runs,
  };
}

async function measured(calls, { quick }) {
  const found = await inPairs(calls, quick ? 500 : 2_000);
  const rates = await inTurns(calls, quick ? 4 : 8);
  const at = (who, share) => rounded(quantile(found[who], share), 2);
  return {
    'direct p50, ms': at('direct', 0.5),
    'direct p99, ms': at('direct', 0.99),
    'p50 added, ms': rounded(at('gateway', 0.5) - at('direct', 0.5), 2),
    'p99 added, ms': rounded(at('gateway', 0.99) - at('direct', 0.99), 2),
    'direct/s': rounded(median(rates.direct)),
    'gateway/s': rounded(median(rates.gateway)),
    rate: rounded(median(rates.gateway) / median(rates.direct), 2),
  };
}

/** One call at a time, of each kind in turn, so that both meet the same disturbances. */
async function inPairs({ direct, gateway }, pairs) {
  const found = { direct: [], gateway: [] };
  for (let pair = 0; pair < pairs; pair++) {
    found.direct.push(await direct());
    found.gateway.push(await gateway());
  }
  return found;
}

/** Calls per second with {@link IN_FLIGHT} at a time, in turns of a second of each kind. */
async function inTurns({ direct, gateway }, turns) {
  const rates = { direct: [], gateway: [] };
  for (let turn = 0; turn < turns; turn++) {
    rates.direct.push(await rateOf(direct));
    rates.gateway.push(await rateOf(gateway));
  }
  return rates;
}

async function rateOf(call) {
  const startMs = performance.now();
  let ended = 0;
  const lane = async () => {
    for (; performance.now() - startMs < TURN_MS; ended++) await call();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return ended / ((performance.now() - startMs) / 1_000);
}

function judge(runs) {
  const of = (column) => runs.map((run) => run[column]);
  return [
    atMost('p50 added', of('p50 added, ms'), { unit: ' ms', must: 3, aim: 1.5 }),
    atMost('p99 added', of('p99 added, ms'), { unit: ' ms', must: 15, aim: 8 }),
    atLeast(`rate, ${IN_FLIGHT} in flight`, of('rate'), { unit: 'x', must: 0.5, aim: 0.7 }),
  ];
}

module.exports = { addedToCalls };
