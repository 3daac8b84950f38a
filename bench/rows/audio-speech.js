'use strict';

/** Row A8: how late the first audio of a speech comes, and how fast one large recording gets to a worker. */
const { Readable } = require('node:stream');
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL, SPEECH_MODEL } = require('../audio/audio-worker');
const { formAround, LargeRecording } = require('../audio/recordings');
const { expectOk, timingOf } = require('../audio/rest-calls');
const { calmRuns } = require('../calm');
const { median, rounded } = require('../figures');
const { atLeast, atMost } = require('../verdicts');

const TEXT = 'The night shift begins when everyone else goes home.';
const SPEECH = { model: SPEECH_MODEL, input: TEXT, voice: 'alloy' };
const WARM_UP_PAIRS = 50;
const MIB = 1024 * 1024;
const UPLOAD_BYTES = 200 * MIB;

/** @returns {Promise<import('../report').Result>} */
async function speechAndUpload(bench) {
  const audio = { max_file_bytes: '512MiB' };
  const runs = await inAudioScene(bench, { workers: [{ slots: 4 }], audio }, async (scene) => {
    await firstBytes(scene, WARM_UP_PAIRS);
    return calmRuns(bench, () => scene.observed(() => measured(scene)));
  });
  const of = (column) => runs.map((run) => run[column]);
  return {
    ...{ row: 'A8', title: 'speech, and one large recording', runs },
    verdicts: [
      atMost('first byte added, p50', of('first byte added, ms'), { unit: ' ms', must: 5, aim: 2 }),
      atLeast('one upload to the worker', of('upload, MiB/s'), {
        ...{ unit: ' MiB/s', must: 100, aim: 150, digits: 0 },
      }),
    ],
  };
}

async function measured(scene) {
  const { direct, gateway } = await firstBytes(scene, scene.bench.quick ? 100 : 500);
  const rates = [];
  for (let i = 0; i < 5; i++) rates.push(await uploadRate(scene, i));
  return {
    'direct, ms': rounded(median(direct), 2),
    'first byte added, ms': rounded(median(gateway) - median(direct), 2),
    'upload, MiB/s': rounded(median(rates)),
  };
}

/** Times to the first audio, directly and through the gateway in turn. */
async function firstBytes({ direct, rest }, pairs) {
  const found = { direct: [], gateway: [] };
  for (let pair = 0; pair < pairs; pair++) {
    found.direct.push((await direct.speak({ ...SPEECH, format: 'pcm', speed: 1 })).firstMs);
    const answer = expectOk(await rest.speak({ ...SPEECH, response_format: 'pcm' }));
    found.gateway.push(answer.firstByteMs);
  }
  return found;
}

/** Of the call to the worker, which reads the recording from the spool. */
async function uploadRate({ rest }, seed) {
  const file = new LargeRecording(UPLOAD_BYTES, seed);
  const { head, tail } = formAround({ model: MODEL });
  const pieces = function* () {
    yield head;
    yield* file.pieces();
    yield tail;
  };
  const length = head.length + file.size + tail.length;
  const form = Readable.from(pieces(), { objectMode: false });
  const headers = { 'content-length': String(length) };
  const answer = expectOk(await rest.transcribe(form, { headers }));
  return UPLOAD_BYTES / MIB / (timingOf(answer, 'worker') / 1_000);
}

module.exports = { speechAndUpload };
