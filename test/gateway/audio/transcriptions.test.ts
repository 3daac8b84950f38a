import OpenAI, { toFile } from 'openai';
import { failWith } from '../../support/audio-server';
import { until } from '../../support/until';
import { closeAll } from '../gateway-fixtures';
import {
  answerCall,
  cancel,
  formOf,
  sendForm,
  startAudioGateway,
  startWorker,
  TRANSCRIPT,
  untilCalled,
  untilSpoolEmpty,
} from './audio-fixtures';
import { FORM_TYPE, wav } from './forms';

afterEach(closeAll);

const DURATION = { type: 'duration', seconds: 2 };

it.each<[string, string, unknown]>([
  ['json', 'application/json', { text: 'hello world', usage: DURATION }],
  ['text', 'text/plain', 'hello world\n'],
  ['srt', 'text/plain', '1\n00:00:00,000 --> 00:00:01,500\nhello world\n\n'],
  ['vtt', 'text/plain', 'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nhello world\n\n'],
  [
    'verbose_json',
    'application/json',
    {
      ...{ task: 'transcribe', language: 'english', duration: 1.5, text: 'hello world' },
      segments: [
        {
          ...{ id: 0, seek: 0, start: 0, end: 1.5, text: 'hello world', tokens: [1, 2] },
          ...{ temperature: 0, avg_logprob: -0.5, compression_ratio: 1, no_speech_prob: 0.1 },
        },
      ],
      usage: DURATION,
    },
  ],
])('answers in the format %s', async (format, type, expected) => {
  const gateway = await startAudioGateway([await startWorker(answerCall)]);
  const answer = await sendForm(gateway, formOf({ response_format: format }));
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain(type);
  expect(answer.headers.get('server-timing')).toMatch(/^queue;dur=\d+, worker;dur=\d+$/);
  const text = await answer.text();
  expect(type === 'text/plain' ? text : JSON.parse(text)).toEqual(expected);
});

it.each([
  ['de-CH', 'swiss high german'],
  ['en_US', 'en_us'],
  ['?', '?'],
  ['', 'unknown'],
])('names the language %j of a worker %j', async (language, name) => {
  const worker = await startWorker((call) => answerCall(call, { ...TRANSCRIPT, language }));
  const gateway = await startAudioGateway([worker]);
  const answer = await sendForm(gateway, formOf({ response_format: 'verbose_json' }));
  expect(await answer.json()).toMatchObject({ language: name, text: 'hello world' });
});

it.each([1_000, 3_000_000])('sends a recording of %i bytes and its options', async (bytes) => {
  const worker = await startWorker();
  const gateway = await startAudioGateway([worker]);
  const recording = wav(bytes).fill('\r\n--bound', 44);
  const fields = {
    ...{ response_format: 'verbose_json', language: 'en', prompt: 'p', temperature: '0.5' },
    'timestamp_granularities[]': ['word', 'segment'],
  };
  const answer = sendForm(gateway, formOf(fields, recording), {
    headers: { 'x-request-id': 'mine' },
  });
  await untilCalled(worker, 1);
  const { options, audio } = worker.held[0]!;
  expect(audio.equals(recording)).toBe(true);
  expect(options).toMatchObject({
    ...{ requestId: 'mine', model: 'whisper-1', task: 'TRANSCRIBE', language: 'en', prompt: 'p' },
    ...{ temperature: 0.5, wantSegments: true, wantWords: true, wantDeltas: false },
    ...{ filename: 'a.wav', contentType: 'audio/wav', size: recording.length },
  });
  answerCall(worker.held[0]!);
  expect((await answer).headers.get('x-request-id')).toBe('mine');
  expect(await (await answer).json()).toMatchObject({ words: [{ word: 'hello' }] });
  await untilSpoolEmpty(gateway);
});

it("serves OpenAI's SDK, in all ways", async () => {
  const worker = await startWorker(({ rpc, options }) => {
    if (options.wantDeltas) for (const delta of ['hello ', 'world']) rpc.write({ delta });
    answerCall({ rpc });
  });
  const gateway = await startAudioGateway([worker]);
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'k', maxRetries: 0 });
  const file = await toFile(wav(100_000), 'a.wav');
  const create = openai.audio.transcriptions;
  expect((await create.create({ file, model: 'whisper-1' })).text).toBe('hello world');
  const verbose = await create.create({
    ...{ file, model: 'whisper-1', response_format: 'verbose_json' },
    timestamp_granularities: ['word'],
  });
  expect(verbose).toMatchObject({ language: 'english', words: [{ word: 'hello', end: 0.5 }] });
  const translation = await openai.audio.translations.create({
    ...{ file, model: 'whisper-1', response_format: 'verbose_json' },
  });
  expect(translation).toMatchObject({ task: 'translate', text: 'hello world' });
  const events = [];
  for await (const event of await create.create({ file, model: 'whisper-1', stream: true })) {
    events.push(event);
  }
  expect(events).toEqual([
    { type: 'transcript.text.delta', delta: 'hello ' },
    { type: 'transcript.text.delta', delta: 'world' },
    { type: 'transcript.text.done', text: 'hello world', usage: DURATION },
  ]);
  const models = (await openai.models.list()).data.map(({ id }) => id);
  expect(models).toEqual(['whisper-1', 'm']);
});

it('sends one piece if the model sends none, and ends the stream with [DONE]', async () => {
  const gateway = await startAudioGateway([await startWorker(answerCall)]);
  const answer = await sendForm(gateway, formOf({ stream: 'true' }));
  expect(answer.headers.get('content-type')).toContain('text/event-stream');
  const done = { type: 'transcript.text.done', text: 'hello world', usage: DURATION };
  expect(await answer.text()).toBe(
    `data: {"type":"transcript.text.delta","delta":"hello world"}\n\n` +
      `data: ${JSON.stringify(done)}\n\ndata: [DONE]\n\n`,
  );
});

it('keeps the status of an error before the first event, and sends later ones as an event', async () => {
  let hasDelta = false;
  const worker = await startWorker(({ rpc }) => {
    if (hasDelta) rpc.write({ delta: 'hello' });
    setImmediate(() => failWith(rpc, 13, 'broken'));
  });
  const gateway = await startAudioGateway([worker]);
  const early = await sendForm(gateway, formOf({ stream: 'true' }));
  expect(early.status).toBe(502);
  expect(await early.json()).toMatchObject({ error: { code: 'backend_failed' } });
  hasDelta = true;
  const late = await sendForm(gateway, formOf({ stream: 'true' }));
  expect(late.status).toBe(200);
  const [first, error] = (await late.text()).split('\n\n');
  expect(first).toContain('hello');
  expect(error).toMatch(/^event: error\ndata: \{"error":\{.*"code":"backend_failed"/);
});

it.each<[number, number, object]>([
  [3, 400, { error: { message: 'too odd', type: 'invalid_request_error' } }],
  [5, 404, { error: { message: 'too odd', code: 'model_not_found' } }],
  [4, 504, { error: { code: 'backend_timeout' } }],
  [13, 502, { error: { code: 'backend_failed' } }],
])('answers status %i of a worker with %i', async (code, status, body) => {
  const worker = await startWorker(({ rpc }) => failWith(rpc, code, 'too odd'));
  const gateway = await startAudioGateway([worker]);
  const answer = await sendForm(gateway, formOf());
  expect(answer.status).toBe(status);
  expect(await answer.json()).toMatchObject(body);
  expect(answer.headers.get('x-nightshift-dropped')).toBeNull();
  expect(answer.headers.get('x-should-retry')).toBe(status === 504 ? 'false' : null);
});

it('cancels a waiting and a running request by its id, once', async () => {
  const aborted: unknown[] = [];
  const worker = await startWorker(undefined, { batch: undefined as never });
  const gateway = await startAudioGateway([worker], {
    workers: [{ address: worker.server.address, slots: 1 }],
  });
  const send = (id: string) =>
    sendForm(gateway, formOf({}, wav(100_000)), { headers: { 'x-client-request-id': id } });
  const running = send('running');
  await untilCalled(worker, 1);
  worker.held[0]!.rpc.once('cancelled', () => aborted.push(1));
  const waiting = send('a/waiting');
  await until(
    async () =>
      (await gateway.metric('scheduler_queue_depth{priority="BATCH",process="gateway"}')) === 1,
    10_000,
    'a waiting request',
    5,
  );
  for (const [id, answer] of [
    ['a/waiting', waiting],
    ['running', running],
  ] as const) {
    expect(await cancel(gateway, id)).toEqual({ status: 200, request_id: id, cancelled: true });
    const { status, headers } = await answer;
    expect([status, headers.get('x-request-id')]).toEqual([499, id]);
    expect(await (await answer).json()).toMatchObject({ error: { code: 'cancelled' } });
    expect(await cancel(gateway, id)).toEqual({ status: 200, request_id: id, cancelled: false });
  }
  await until(() => aborted.length === 1, 10_000, 'an abort at the worker', 5);
  await untilSpoolEmpty(gateway);
});

it('gives a request up when its client closes the connection', async () => {
  const worker = await startWorker();
  const gateway = await startAudioGateway([worker]);
  const leaving = new AbortController();
  const sent = sendForm(gateway, formOf({}, wav(200_000)), { signal: leaving.signal });
  sent.catch(() => undefined);
  await untilCalled(worker, 1);
  let isAborted = false;
  worker.held[0]!.rpc.once('cancelled', () => (isAborted = true));
  leaving.abort();
  await until(() => isAborted, 10_000, 'an abort at the worker', 5);
  await untilSpoolEmpty(gateway);
});

it('refuses what no worker of the model can do, with the parameter', async () => {
  const model = { name: 'whisper-1', tasks: ['TRANSCRIBE'], segments: false, words: false };
  const health = () => ({ status: 'SERVING' as const, models: [model as never], slots: 1 });
  const gateway = await startAudioGateway([await startWorker(answerCall, { health })]);
  const paramOf = async (fields: Record<string, string>, path?: string) => {
    const answer = await sendForm(gateway, formOf(fields), path === undefined ? {} : { path });
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: { param: string; code: string } };
    return `${error.code} ${error.param}`;
  };
  const words = { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' };
  expect(await paramOf(words)).toBe('invalid_value timestamp_granularities');
  expect(await paramOf({ response_format: 'srt' })).toBe('invalid_value response_format');
  expect(await paramOf({}, 'translations')).toBe('invalid_value model');
});

it('serves no page of another site', async () => {
  const gateway = await startAudioGateway([await startWorker(answerCall)]);
  const headers = { origin: 'https://evil.example', 'content-type': FORM_TYPE };
  for (const path of ['transcriptions', 'translations', 'transcriptions/x/cancel']) {
    expect((await sendForm(gateway, formOf(), { path, headers })).status).toBe(403);
  }
});
