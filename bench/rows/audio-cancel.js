'use strict';

/** Row A2: how long a cancel takes for a request that waits, for one whose worker ignores Cancel, and for a live session. */
const { waitFor } = require('../api-client');
const { formOf, recording } = require('../audio/recordings');
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL } = require('../audio/audio-worker');
const { FRAME_MS, openGatewaySession, speak } = require('../audio/live-sessions');
const { calmRuns } = require('../calm');
const { quantile, rounded } = require('../figures');
const { atMost } = require('../verdicts');

const LONG_MS = 600_000;
const TIMEOUT_MS = 30_000;
/** More than are cancelled within `cancel_quarantine`, which blocks the slot of each. */
const SLOTS = 64;

/** @returns {Promise<import('../report').Result>} */
async function cancelled(bench) {
  const form = formOf(recording(8_192), { model: MODEL });
  const runs = await calmRuns(bench, async () => {
    const queued = await inAudioScene(bench, queueScene(), (scene) =>
      scene.observed(() => whileQueued(scene, form)),
    );
    const inFlight = await inAudioScene(bench, flightScene(), (scene) =>
      scene.observed(() => whileInFlight(scene, form)),
    );
    const live = await inAudioScene(bench, streamScene(), (scene) =>
      scene.observed(() => whileLive(scene)),
    );
    const parts = [queued, inFlight, live];
    const othersCores = Math.max(...parts.map((part) => part['others, cores']));
    return { ...queued, ...inFlight, ...live, 'others, cores': othersCores };
  });
  return { row: 'A2', title: 'cancel', verdicts: judge(runs), runs };
}

function queueScene() {
  const fair_request_queue = { flow_capacity: 1_000 };
  return { workers: [{ slots: 1, base_ms: LONG_MS }], audio: { fair_request_queue } };
}

function flightScene() {
  return { workers: [{ slots: SLOTS, base_ms: LONG_MS, deaf_cancel: true }] };
}

function streamScene() {
  return { workers: [{ max_streams: SLOTS, deaf_cancel: true }] };
}

/** From the cancel to the answer of the cancelled request. */
async function whileQueued({ rest, gateway, bench }, form) {
  const count = bench.quick ? 200 : 600;
  const occupant = rest.transcribe(form);
  // It ends with the connections.
  occupant.catch(() => undefined);
  const isBusy = async () =>
    (await gateway.metric('audio_worker_slots', 'state="used"')) === 1 ? true : null;
  await waitFor(isBusy, { timeoutMs: TIMEOUT_MS, what: 'call' });
  const waiting = Array.from({ length: count }, (_, number) => {
    const id = `queued-${number}`;
    return { id, answer: rest.transcribe(form, { headers: { 'x-request-id': id } }) };
  });
  const isFull = async () =>
    (await gateway.metric('scheduler_queue_depth')) === count ? true : null;
  await waitFor(isFull, { timeoutMs: TIMEOUT_MS, what: `${count} requests in the queue` });
  const times = [];
  for (const { id, answer } of waiting) {
    const startMs = performance.now();
    const [{ atMs, status }] = await Promise.all([answer, rest.cancel(id)]);
    expect(status === 499, `a cancelled request was answered ${status}`);
    times.push(atMs - startMs);
  }
  return { 'queued p50, ms': at(times, 0.5), 'queued p99, ms': at(times, 0.99) };
}

/** From the cancel until the worker finds its call ended, by the clock of the machine. */
async function whileInFlight({ rest, worker, bench }, form) {
  const count = bench.quick ? 30 : 100;
  const times = [];
  for (let number = 0; number < count; number++) {
    const id = `in-flight-${number}`;
    const answer = rest.transcribe(form, { headers: { 'x-request-id': id } });
    const isCalled = async () => ((await worker.stats()).calls.file > number ? true : null);
    await waitFor(isCalled, { timeoutMs: TIMEOUT_MS, what: 'call' });
    const startMs = Date.now();
    await rest.cancel(id);
    const abortedAt = async () => (await worker.stats()).aborted_at_ms[id] ?? null;
    times.push(
      (await waitFor(abortedAt, { timeoutMs: TIMEOUT_MS, what: 'aborted call' })) - startMs,
    );
    expect((await answer).status === 499, 'a cancelled request was not answered 499');
  }
  return { 'in flight p50, ms': at(times, 0.5), 'in flight p99, ms': at(times, 0.99) };
}

/** From the moment when a client leaves until the worker finds its stream ended. */
async function whileLive({ worker, gateway, bench }) {
  const count = bench.quick ? 30 : 100;
  const times = [];
  for (let number = 0; number < count; number++) {
    const session = await openGatewaySession(gateway.address);
    await speak([session], 20 * FRAME_MS);
    const startMs = Date.now();
    await session.close();
    const abortedAt = async () => {
      const ended = Object.values((await worker.stats()).aborted_at_ms);
      return ended.length > number ? Math.max(...ended) : null;
    };
    const endMs = await waitFor(abortedAt, { timeoutMs: TIMEOUT_MS, what: 'aborted stream' });
    times.push(endMs - startMs);
  }
  return { 'stream p50, ms': at(times, 0.5), 'stream p99, ms': at(times, 0.99) };
}

function judge(runs) {
  const of = (column) => runs.map((run) => run[column]);
  return [
    atMost('queued: cancel to answer, p99', of('queued p99, ms'), {
      unit: ' ms',
      must: 50,
      aim: 5,
    }),
    atMost(
      'in flight, Cancel not answered: cancel to abort at the worker, p99',
      of('in flight p99, ms'),
      {
        ...{ unit: ' ms', must: 150, aim: 120 },
      },
    ),
    atMost('live session: client leaves to abort at the worker, p99', of('stream p99, ms'), {
      ...{ unit: ' ms', must: 50, aim: 10 },
    }),
  ];
}

function at(times, share) {
  return rounded(quantile(times, share), 1);
}

function expect(isAsExpected, message) {
  if (!isAsExpected) throw new Error(message);
}

module.exports = { cancelled };
