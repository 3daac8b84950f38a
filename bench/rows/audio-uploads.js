'use strict';

/** Row A6: memory of a gateway that gets many large recordings at once for a worker that takes one at a time. */
const fs = require('node:fs');
const { Readable } = require('node:stream');
const { inAudioScene } = require('../audio/audio-scene');
const { MODEL } = require('../audio/audio-worker');
const { formAround, LargeRecording } = require('../audio/recordings');
const { expectOk } = require('../audio/rest-calls');
const { calmRuns } = require('../calm');
const { rounded } = require('../figures');
const { memoryMb } = require('../process-stats');
const { atMost } = require('../verdicts');

const MIB = 1024 * 1024;
const BYTES = 25 * MIB;

/** @returns {Promise<import('../report').Result>} */
async function uploadsAtOnce(bench) {
  const uploads = bench.quick ? 30 : 100;
  const runs = await calmRuns(bench, () =>
    inAudioScene(bench, { workers: [{ slots: 1 }] }, (scene) =>
      scene.observed(() => uploaded(scene, uploads)),
    ),
  );
  return {
    row: 'A6',
    title: `${uploads} uploads of ${BYTES / MIB} MiB at once, one slot`,
    verdicts: [
      atMost(
        'growth of the gateway, all recordings byte for byte at the worker',
        runs.map((run) => run['growth, MB']),
        { unit: ' MB', must: 150, aim: 60, digits: 0 },
      ),
    ],
    runs,
  };
}

async function uploaded({ rest, gateway, worker }, uploads) {
  // What the first request loads is no memory of uploads.
  await send(rest, 'warm-up', new LargeRecording(MIB, 'warm-up'));
  const before = memoryMb(gateway.pid).now;
  forgetPeak(gateway.pid);
  const startMs = performance.now();
  const recordings = Array.from({ length: uploads }, (_, seed) => new LargeRecording(BYTES, seed));
  await Promise.all(recordings.map((one, number) => send(rest, `upload-${number}`, one)));
  const seconds = (performance.now() - startMs) / 1_000;
  const { peak } = memoryMb(gateway.pid);
  const { recordings: arrived } = await worker.stats();
  recordings.forEach((one, number) => {
    const { sha256 } = arrived[`upload-${number}`] ?? {};
    if (sha256 !== one.digest()) throw new Error(`upload ${number} arrived as ${sha256}`);
  });
  const spool = await gateway.metric('audio_spool_bytes');
  if (spool !== 0) throw new Error(`${spool} bytes are left in the spool`);
  return {
    'before, MB': rounded(before),
    'growth, MB': rounded(peak - before),
    'MiB/s': rounded((uploads * BYTES) / MIB / seconds),
  };
}

async function send(rest, id, file) {
  const { head, tail } = formAround({ model: MODEL });
  const length = head.length + file.size + tail.length;
  const form = Readable.from(pieces(head, file, tail), { objectMode: false });
  const headers = { 'x-request-id': id, 'content-length': String(length) };
  expectOk(await rest.transcribe(form, { headers }));
}

function* pieces(head, file, tail) {
  yield head;
  yield* file.pieces();
  yield tail;
}

/** The highest memory use counts from now on, see proc(5). */
function forgetPeak(pid) {
  fs.writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

module.exports = { uploadsAtOnce };
