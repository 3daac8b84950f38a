import OpenAI from 'openai';
import { failWith, MODEL, SERVING, type SpeechRpc } from '../../support/audio-server';
import { until } from '../../support/until';
import { closeAll } from '../gateway-fixtures';
import { type AudioGateway, startAudioGateway, startWorker } from './audio-fixtures';

afterEach(closeAll);

const LATE_MS = 10_000;
const VOICES = { ...MODEL, name: 'tts-1', voices: ['alloy'], tasks: ['SPEAK'] };
const health = () => ({ ...SERVING, models: [VOICES, MODEL] }) as never;

async function startSpeech(speech: (call: SpeechRpc) => void): Promise<AudioGateway> {
  return startAudioGateway([await startWorker(undefined, { speech, health })]);
}

/** Three pieces of 1,000 bytes. */
function speak(call: SpeechRpc): void {
  for (const byte of [1, 2, 3]) call.write({ audio: Buffer.alloc(1_000, byte), durationS: byte });
  call.end();
}

const SPOKEN = Buffer.concat([1, 2, 3].map((byte) => Buffer.alloc(1_000, byte)));
const WANTED = { model: 'tts-1', input: 'Good night.', voice: 'alloy' };

function post(gateway: AudioGateway, body: object, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/audio/speech`, {
    ...{ method: 'POST', body: JSON.stringify(body), ...init },
    headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
  });
}

it("serves OpenAI's SDK, and hands what is wanted to the worker", async () => {
  const requests: unknown[] = [];
  const gateway = await startSpeech((call) => {
    requests.push(call.request);
    speak(call);
  });
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'k', maxRetries: 0 });
  const answer = await openai.audio.speech.create({
    ...{ ...WANTED, response_format: 'wav', speed: 1.5, instructions: 'Whisper.' },
  });
  expect(answer.headers.get('content-type')).toBe('audio/wav');
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(SPOKEN);
  expect(requests).toMatchObject([
    { ...WANTED, format: 'wav', speed: 1.5, instructions: 'Whisper.' },
  ]);
});

it('sends events in base64 with the usage at the end', async () => {
  const gateway = await startSpeech(speak);
  const text = await (await post(gateway, { ...WANTED, stream_format: 'sse' })).text();
  const events = text
    .split('\n\n')
    .filter((one) => one !== '')
    .map((one) => JSON.parse(one.replace(/^data: /, '')) as Record<string, unknown>);
  const audio = events.slice(0, -1).map((one) => Buffer.from(String(one['audio']), 'base64'));
  expect(Buffer.concat(audio)).toEqual(SPOKEN);
  expect(events.at(-1)).toEqual({
    type: 'speech.audio.done',
    usage: { type: 'duration', seconds: 3 },
  });
});

it.each<[string, object, string]>([
  ['input', { ...WANTED, input: 'x'.repeat(4_097) }, 'input'],
  ['voice', { ...WANTED, voice: 'nobody' }, 'voice'],
  ['speed', { ...WANTED, speed: 5 }, 'speed'],
  ['format', { ...WANTED, response_format: 'midi' }, 'response_format'],
  ['stream format', { ...WANTED, stream_format: 'morse' }, 'stream_format'],
  ['parameter', { ...WANTED, volume: 11 }, 'volume'],
  ['model', { ...WANTED, model: 'whisper-1', voice: 'x', response_format: 'mp3' }, 'model'],
])('refuses a wrong %s with its parameter', async (_, body, param) => {
  const gateway = await startAudioGateway([
    await startWorker(undefined, {
      speech: speak,
      health: () =>
        ({ ...SERVING, models: [VOICES, { ...MODEL, tasks: ['TRANSCRIBE'] }] }) as never,
    }),
  ]);
  const answer = await post(gateway, body);
  const { error } = (await answer.json()) as { error: { param: string } };
  expect([answer.status, error.param]).toEqual([400, param]);
});

it('keeps the status of an error before the first byte, and cuts an answer after it', async () => {
  const gateway = await startSpeech((call) => {
    if (call.request.input === 'cut') call.write({ audio: Buffer.alloc(10) });
    failWith(call, 3, 'no such words');
  });
  const early = await post(gateway, WANTED);
  expect([early.status, await early.text()]).toEqual([400, expect.stringContaining('no such')]);
  const cut = await post(gateway, { ...WANTED, input: 'cut' });
  expect(cut.status).toBe(200);
  await expect(cut.arrayBuffer()).rejects.toThrow();
});

it('slows the worker down to the speed of the client, and frees it when the client is gone', async () => {
  let written = 0;
  let isCancelled = false;
  const gateway = await startSpeech((call) => {
    call.on('cancelled', () => (isCancelled = true));
    const next = (): void => {
      while (written < 2_000) {
        written++;
        if (!call.write({ audio: Buffer.alloc(64_000) })) return void call.once('drain', next);
      }
    };
    next();
  });
  const controller = new AbortController();
  await post(gateway, WANTED, { signal: controller.signal });
  let before = -1;
  const isStill = () => {
    const same = written === before;
    before = written;
    return same;
  };
  await until(isStill, LATE_MS, 'the worker to rest', 300);
  expect(written).toBeLessThan(2_000);
  controller.abort();
  await until(() => isCancelled, LATE_MS, 'the worker to see that the client is gone');
});

it('cancels speech by its id, and counts what became of each request', async () => {
  let isBegun = false;
  const gateway = await startSpeech((call) => {
    if (call.request.input === 'quick') return speak(call);
    isBegun = true;
  });
  await (await post(gateway, { ...WANTED, input: 'quick' })).arrayBuffer();
  const answer = post(gateway, WANTED, { headers: { 'x-request-id': 'mine' } });
  await until(() => isBegun, LATE_MS, 'the call');
  const url = `${gateway.url}/v1/audio/speech/mine/cancel`;
  const cancelled = await (await fetch(url, { method: 'POST' })).json();
  expect(cancelled).toEqual({ request_id: 'mine', cancelled: true });
  expect((await answer).status).toBe(499);
  const count = (status: string) =>
    gateway.metric(`tts_requests_total{status="${status}",process="gateway"}`);
  expect([await count('completed'), await count('cancelled'), await count('failed')]).toEqual([
    ...[1, 1, 0],
  ]);
  expect(await gateway.metric('tts_ttfb_seconds_count{process="gateway"}')).toBe(1);
  expect(await gateway.metric('tts_synthesis_duration_seconds_count{process="gateway"}')).toBe(2);
});

it('sends a body for a model of a pool to its backend, byte for byte', async () => {
  const gateway = await startSpeech(speak);
  const body = { model: 'm', input: 'x', voice: 'any', unknown: 1 };
  const answer = post(gateway, body);
  const { held } = gateway.backend;
  const received = await until(() => held[0], LATE_MS, 'the request');
  expect(received.body.toString()).toBe(JSON.stringify(body));
  gateway.backend.respond({ ok: true });
  expect(await (await answer).json()).toEqual({ ok: true });
});
