'use strict';

/** Live sessions that send audio as it is spoken, over a gateway's WebSocket or straight to an audio worker. */
const { once } = require('node:events');
const WebSocket = require('ws');
const { MODEL } = require('./audio-worker');

const RATE_HZ = 24_000;
const FRAME_MS = 20;
const FRAME_BYTES = (RATE_HZ * 2 * FRAME_MS) / 1_000;
/** The simulator sends a new hypothesis with each word, and a word after so many milliseconds of audio. */
const WORD_MS = 400;
const FRAMES_PER_EVENT = WORD_MS / FRAME_MS;
const LOOK_MS = 1;

/** Notes when frames were sent and how long their events took. */
class SessionTimes {
  delays = [];
  #sentMs = [];
  #frames = 0;
  #events = 0;

  sent() {
    if (++this.#frames % FRAMES_PER_EVENT === 0) this.#sentMs.push(performance.now());
  }

  /** The nth hypothesis is about the nth frame with which a word ended. */
  arrived() {
    const sentMs = this.#sentMs[this.#events++];
    if (sentMs === undefined) throw new Error('a hypothesis without audio');
    this.delays.push(performance.now() - sentMs);
  }

  /** Words whose hypothesis has not arrived. */
  get missing() {
    return this.#sentMs.length - this.#events;
  }
}

/** @param {string} address host and port of a gateway */
async function openGatewaySession(address) {
  const times = new SessionTimes();
  const socket = new WebSocket(`ws://${address}/v1/realtime?model=${MODEL}`);
  const closed = once(socket, 'close');
  const updated = new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('message', (data) => {
      const event = JSON.parse(data.toString());
      if (event.type === 'transcript.partial') times.arrived();
      else if (event.type === 'session.updated') resolve();
      else if (event.type === 'error') reject(new Error(data.toString()));
    });
  });
  await once(socket, 'open');
  const input = {
    format: { type: 'audio/pcm', rate: RATE_HZ },
    transcription: { model: MODEL, partials: true },
    turn_detection: null,
  };
  const session = { type: 'transcription', audio: { input } };
  socket.send(JSON.stringify({ type: 'session.update', session }));
  await updated;
  return {
    times,
    send: (frame) => socket.send(frame),
    async close() {
      socket.terminate();
      await closed;
    },
  };
}

/** @param {{ client: object }} direct calls to an audio worker without a gateway */
async function openDirectSession({ client }, sessionId) {
  const times = new SessionTimes();
  const call = client.transcribeStream();
  call.on('data', ({ kind }) => kind === 'PARTIAL' && times.arrived());
  call.on('error', () => undefined);
  call.write({
    options: {
      ...{ sessionId, model: MODEL, encoding: 'pcm16', sampleRateHz: RATE_HZ },
      ...{ serverVad: false, wantPartials: true },
    },
  });
  return { times, send: (audio) => call.write({ audio }), close: async () => call.cancel() };
}

/** Sends frames to all sessions for a time, each at its own moments. Returns how late events came, ms. */
async function speak(sessions, durationMs) {
  const frame = Buffer.alloc(FRAME_BYTES, 0x11);
  const startMs = performance.now();
  const frames = Math.floor(durationMs / FRAME_MS);
  const due = sessions.map((_, number) => startMs + (number * FRAME_MS) / sessions.length);
  const sent = sessions.map(() => 0);
  await new Promise((resolve) => {
    const timer = setInterval(() => {
      const nowMs = performance.now();
      sessions.forEach(({ times, send }, number) => {
        for (; due[number] <= nowMs && sent[number] < frames; due[number] += FRAME_MS) {
          sent[number]++;
          times.sent();
          send(frame);
        }
      });
      const isOver = sent.every((count) => count === frames);
      const isLate = nowMs > startMs + 2 * durationMs;
      if (!isLate && (!isOver || sessions.some(({ times }) => times.missing > 0))) return;
      clearInterval(timer);
      resolve();
    }, LOOK_MS);
  });
  const missing = sessions.reduce((sum, { times }) => sum + times.missing, 0);
  if (missing > 0) throw new Error(`${missing} hypotheses did not arrive`);
  return sessions.flatMap(({ times }) => times.delays.splice(0));
}

module.exports = { FRAME_MS, openDirectSession, openGatewaySession, speak };
