'use strict';

/** The calls that the gateway makes to an audio worker, made without it. */
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const { secondsOf } = require('./recordings');

const CHUNK_BYTES = 256 * 1024;
const DEADLINE_MS = 60_000;

/**
 * @param {{ root: string }} bench
 * @param {string} address of an audio worker
 */
function openDirectCalls({ root }, address) {
  const { audioWorkerService } = require(path.join(root, 'dist/proto/audio-worker.js'));
  const client = new (audioWorkerService())(address, grpc.credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
  });
  let calls = 0;
  const metadata = () => {
    const sent = new grpc.Metadata();
    sent.set('x-request-id', `direct-${++calls}`);
    return sent;
  };
  const deadline = () => Date.now() + DEADLINE_MS;
  return {
    client,
    /** How long a transcription takes, ms. */
    transcribe(model, file) {
      const startMs = performance.now();
      const call = client.transcribeFile(metadata(), { deadline: deadline() });
      call.write({ options: optionsOf(model, file) });
      for (let at = 0; at < file.length; at += CHUNK_BYTES) {
        call.write({ chunk: file.subarray(at, at + CHUNK_BYTES) });
      }
      call.end();
      return ended(call, startMs).then(({ ms }) => ms);
    },
    /** How long speech takes until its first audio, and until its end, ms. */
    speak(request) {
      const startMs = performance.now();
      const call = client.synthesize(request, metadata(), { deadline: deadline() });
      return ended(call, startMs);
    },
    close: () => client.close(),
  };
}

function optionsOf(model, file) {
  return {
    ...{ requestId: 'direct', model, task: 'TRANSCRIBE', filename: 'a.wav' },
    ...{ contentType: 'audio/wav', size: file.length, durationS: secondsOf(file.length) },
  };
}

function ended(call, startMs) {
  return new Promise((resolve, reject) => {
    let firstMs = null;
    call.on('data', () => (firstMs ??= performance.now() - startMs));
    call.on('error', reject);
    call.on('end', () => {
      if (firstMs === null) reject(new Error('a call ended without a result'));
      else resolve({ firstMs, ms: performance.now() - startMs });
    });
  });
}

module.exports = { openDirectCalls };
