'use strict';

/** Row A7: how late text comes in many live sessions, beside the same sessions without the gateway. */
const { inAudioScene } = require('../audio/audio-scene');
const {
  FRAME_MS,
  openDirectSession,
  openGatewaySession,
  speak,
} = require('../audio/live-sessions');
const { calmRuns } = require('../calm');
const { quantile, rounded } = require('../figures');
const { atMost } = require('../verdicts');

const SESSIONS = 50;
const WARM_UP_MS = 3_000;

/** @returns {Promise<import('../report').Result>} */
async function liveSessions(bench) {
  const workers = [{ max_streams: 2 * SESSIONS }];
  const runs = await inAudioScene(bench, { workers }, async (scene) => {
    await inTurns(scene, { turnMs: WARM_UP_MS, turns: 1 });
    return calmRuns(bench, () => scene.observed(() => measured(scene)));
  });
  const of = (column) => runs.map((run) => run[column]);
  return {
    ...{ row: 'A7', title: `${SESSIONS} sessions of ${1_000 / FRAME_MS} frames a second`, runs },
    verdicts: [
      atMost('p50 added', of('p50 added, ms'), { unit: ' ms', must: 1.5, aim: 0.8 }),
      atMost('p99 added', of('p99 added, ms'), { unit: ' ms', must: 10, aim: 5 }),
    ],
  };
}

async function measured(scene) {
  const { quick } = scene.bench;
  const plan = { turnMs: quick ? 5_000 : 10_000, turns: quick ? 2 : 4 };
  const { direct, gateway } = await inTurns(scene, plan);
  const at = (delays, share) => rounded(quantile(delays, share), 2);
  return {
    events: gateway.length,
    'direct p50, ms': at(direct, 0.5),
    'direct p99, ms': at(direct, 0.99),
    'p50 added, ms': rounded(at(gateway, 0.5) - at(direct, 0.5), 2),
    'p99 added, ms': rounded(at(gateway, 0.99) - at(direct, 0.99), 2),
  };
}

/** Delays of events without and with the gateway, in turns. */
async function inTurns({ direct: calls, gateway: { address } }, { turnMs, turns }) {
  const found = { direct: [], gateway: [] };
  for (let turn = 0; turn < turns; turn++) {
    found.direct.push(
      ...(await delays((number) => openDirectSession(calls, `direct-${turn}-${number}`), turnMs)),
    );
    found.gateway.push(...(await delays(() => openGatewaySession(address), turnMs)));
  }
  return found;
}

async function delays(open, turnMs) {
  const sessions = [];
  try {
    for (let number = 0; number < SESSIONS; number++) sessions.push(await open(number));
    return await speak(sessions, turnMs);
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
}

module.exports = { liveSessions };
