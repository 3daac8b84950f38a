'use strict';

/** A simulated audio worker in a process of its own: `nightshift simulator --audio-port`. */
const path = require('node:path');
const { freePort } = require('../../test/support/free-port');
const { startChild } = require('../children');

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5_000;
/** The model that transcribes, and the one that speaks. */
const MODEL = 'whisper-1';
const SPEECH_MODEL = 'tts-1';

/**
 * @param {{ root: string }} bench
 * @param {{ maxBatch?: number, [setting: string]: unknown }} options recordings in a call at most, and members of
 *   `audio` in `/simulator/config`; without them, a worker that answers at once
 */
async function startAudioWorker({ root }, { maxBatch = 1, ...settings }) {
  const [port, audioPort] = [await freePort(), await freePort()];
  const args = ['simulator', '--port', port, '--audio-port', audioPort].map(String);
  const child = await startChild({
    command: process.execPath,
    args: [path.join(root, 'cli', 'nightshift.js'), ...args],
    readyOn: 'stderr',
    isReady: (line) => line.includes('simulator ready'),
    readyTimeoutMs: START_TIMEOUT_MS,
  });
  const url = `http://127.0.0.1:${port}/simulator`;
  const models = [
    { name: MODEL, tasks: ['TRANSCRIBE'], max_batch: maxBatch },
    { name: SPEECH_MODEL, tasks: ['SPEAK'], streaming: false },
  ];
  const audio = { base_ms: 0, item_ms: 0, models, ...settings };
  const answer = await fetch(`${url}/config`, { method: 'PUT', body: JSON.stringify({ audio }) });
  if (!answer.ok) throw new Error(`settings of an audio worker: ${await answer.text()}`);
  return {
    pid: child.pid,
    address: `127.0.0.1:${audioPort}`,
    /** What it counted so far: `audio` in `/simulator/stats`. */
    stats: async () => (await (await fetch(`${url}/stats`)).json()).audio,
    stop: () => child.stop(STOP_TIMEOUT_MS),
  };
}

module.exports = { MODEL, SPEECH_MODEL, startAudioWorker };
