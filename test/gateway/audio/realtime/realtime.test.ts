import { request as httpRequest } from 'node:http';
import { until } from '../../../support/until';
import { closeAll } from '../../gateway-fixtures';
import {
  COMPLETED,
  connect,
  DELTA,
  FAILED,
  LATE_MS,
  liveGateway,
  liveWorker,
  PCM_100_MS,
  tryConnect,
  update,
} from './realtime-scene';

jest.setTimeout(60_000);
afterEach(closeAll);

describe('a realtime session', () => {
  it('transcribes what a client commits, with deltas that only grow', async () => {
    const worker = await liveWorker();
    const gateway = await liveGateway([worker]);
    const client = await connect(gateway);
    client.send({ type: 'input_audio_buffer.append', audio: PCM_100_MS.toString('base64') });
    client.socket.send(PCM_100_MS);
    client.send({ type: 'input_audio_buffer.commit' });
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    await until(() => stream.frames.some(({ commit }) => commit), LATE_MS, 'the commit');
    expect(stream.frames[0]?.options).toMatchObject({
      ...{ model: 'whisper-1', encoding: 'pcm16', sampleRateHz: 24_000 },
      ...{ serverVad: false, wantPartials: true, startMs: 0 },
    });
    expect(stream.bytes()).toBe(2 * PCM_100_MS.length);
    stream.say('PARTIAL', { text: 'go forth', stableChars: 3 });
    stream.say('PARTIAL', { text: 'go forward', stableChars: 10 });
    stream.say('FINAL', { text: 'go forward ten meters', endMs: 200 });
    stream.say('ITEM_DONE', { usage: { audioSeconds: 0.2, inputTokens: 0, outputTokens: 0 } });
    const completed = await client.next(COMPLETED);
    const committed = await client.next('input_audio_buffer.committed');
    expect(client.of(DELTA).map(({ delta }) => delta)).toEqual(['go', ' forward', ' ten meters']);
    expect(completed).toMatchObject({
      item_id: committed['item_id'],
      content_index: 0,
      transcript: 'go forward ten meters',
      usage: { type: 'duration', seconds: 1 },
    });
    expect(client.of('transcript.partial')).toEqual([]);
    expect(client.of('error')).toEqual([]);
  });

  it('announces the turns that the worker detects', async () => {
    const worker = await liveWorker();
    const client = await connect(await liveGateway([worker]), 'intent=transcription', {
      manual: false,
    });
    client.send(update({ transcription: { model: 'whisper-1', partials: true } }));
    expect(await client.next('session.updated')).toMatchObject({
      session: { audio: { input: { turn_detection: { type: 'server_vad' } } } },
    });
    client.socket.send(PCM_100_MS);
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    expect(await until(() => stream.frames[0], LATE_MS, 'options')).toMatchObject({
      options: { serverVad: true, prefixMs: 300, silenceMs: 200 },
    });
    stream.say('SPEECH_STARTED', { startMs: 20 });
    stream.say('PARTIAL', { text: 'hello', stableChars: 0 });
    stream.say('SPEECH_STOPPED', { endMs: 80 });
    stream.say('FINAL', { text: 'hello', endMs: 80 });
    stream.say('ITEM_DONE', { usage: { audioSeconds: 1, inputTokens: 3, outputTokens: 4 } });
    const { item_id: item } = await client.next(COMPLETED);
    expect(client.events.slice(2)).toMatchObject([
      { type: 'input_audio_buffer.speech_started', item_id: item, audio_start_ms: 20 },
      { type: 'transcript.partial', item_id: item, text: 'hello' },
      { type: 'input_audio_buffer.speech_stopped', item_id: item, audio_end_ms: 80 },
      { type: 'input_audio_buffer.committed', item_id: item, previous_item_id: null },
      { type: DELTA, item_id: item, delta: 'hello' },
      { type: COMPLETED, usage: { type: 'tokens', total_tokens: 7 } },
    ]);
  });

  it('counts the audio itself if the worker says nonsense', async () => {
    const worker = await liveWorker();
    const client = await connect(await liveGateway([worker]));
    client.socket.send(PCM_100_MS);
    client.send({ type: 'input_audio_buffer.commit' });
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    await until(() => stream.bytes() === PCM_100_MS.length, LATE_MS, 'the audio');
    const usage = { audioSeconds: Infinity, inputTokens: 0, outputTokens: 0 };
    stream.say('ITEM_DONE', { usage });
    expect((await client.next(COMPLETED))['usage']).toEqual({ type: 'duration', seconds: 1 });
  });

  it('answers what it cannot take with an error, and goes on', async () => {
    const worker = await liveWorker();
    const client = await connect(await liveGateway([worker]));
    client.socket.send('{');
    client.socket.send('[]');
    client.send({ type: 'response.create', event_id: 'e1' });
    client.send({ type: 'input_audio_buffer.commit' });
    client.socket.send(Buffer.alloc(3));
    client.send({ type: 'input_audio_buffer.append', audio: '%%%' });
    client.send(update({ format: { type: 'audio/mp3' } }));
    client.send(update({ transcription: { model: 'nobody' } }));
    client.socket.send(PCM_100_MS);
    client.send(update({ format: { type: 'audio/pcmu' } }));
    client.send(update({ transcription: { language: 'de' } }));
    await client.next('session.updated', 2);
    expect(client.of('error').map(({ error }) => error)).toMatchObject([
      { code: 'invalid_json' },
      { code: 'invalid_value' },
      { code: 'invalid_value', param: 'type', event_id: 'e1' },
      { code: 'input_audio_buffer_commit_empty' },
      { code: 'invalid_value', param: 'audio' },
      { code: 'invalid_value', param: 'audio' },
      { code: 'invalid_value', param: 'session.audio.input.format.type' },
      { code: 'model_not_found' },
      { code: 'invalid_value', param: 'session' },
    ]);
    client.socket.send(PCM_100_MS);
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    await until(() => stream.bytes() === 2 * PCM_100_MS.length, LATE_MS, 'the audio');
    expect(stream.frames.map(({ options }) => options?.language ?? null)).toContain('de');
  });

  it('transcribes nothing of audio that was cleared', async () => {
    const worker = await liveWorker();
    const client = await connect(await liveGateway([worker]));
    client.socket.send(PCM_100_MS);
    client.send({ type: 'input_audio_buffer.commit' });
    client.socket.send(PCM_100_MS);
    const old = await until(() => worker.streams[0], LATE_MS, 'a stream');
    await until(() => old.bytes() === 2 * PCM_100_MS.length, LATE_MS, 'the audio');
    client.send({ type: 'input_audio_buffer.clear' });
    await client.next('input_audio_buffer.cleared');
    client.socket.send(Buffer.alloc(480, 1));
    old.say('FINAL', { text: 'kept' });
    old.say('ITEM_DONE');
    old.say('FINAL', { text: 'cleared' });
    old.say('ITEM_DONE');
    const fresh = await until(() => worker.streams[1], LATE_MS, 'another stream');
    await until(() => fresh.bytes() === 480, LATE_MS, 'the audio after the clear');
    expect(fresh.frames[0]?.options?.startMs).toBe(200);
    expect(old.isCancelled).toBe(true);
    client.send({ type: 'input_audio_buffer.commit' });
    await until(() => fresh.frames.some(({ commit }) => commit), LATE_MS, 'the commit');
    fresh.say('FINAL', { text: 'new' });
    fresh.say('ITEM_DONE');
    await client.next(COMPLETED, 2);
    expect(client.of(COMPLETED).map(({ transcript }) => transcript)).toEqual(['kept', 'new']);
  });

  it('cancels the call when the client is gone', async () => {
    const worker = await liveWorker();
    const gateway = await liveGateway([worker]);
    const client = await connect(gateway);
    client.socket.send(PCM_100_MS);
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    expect(await gateway.metric('audio_streams_active{process="gateway"}')).toBe(1);
    client.socket.terminate();
    await until(() => stream.isCancelled && worker.cancels.length === 1, LATE_MS, 'the cancel');
    const isEnded = async () =>
      (await gateway.metric('audio_streams_active{process="gateway"}')) === 0;
    await until(isEnded, LATE_MS, 'the session to be forgotten');
  });

  it('ends idle sessions, and those that last too long', async () => {
    const worker = await liveWorker();
    const idle = await liveGateway([worker], { stream: { idle_timeout: '300ms' } });
    const quiet = await connect(idle);
    expect(await quiet.closed).toBe(1000);
    expect(await quiet.next('error')).toMatchObject({ error: { code: 'session_expired' } });
    const short = await liveGateway([worker], { stream: { max_session: '500ms' } });
    const long = await connect(short);
    long.socket.send(PCM_100_MS);
    long.send({ type: 'input_audio_buffer.commit' });
    expect(await long.closed).toBe(1000);
    expect(await long.next(FAILED)).toMatchObject({ error: { code: 'session_expired' } });
  });

  it('refuses a message of more than 1 MiB', async () => {
    const client = await connect(await liveGateway([await liveWorker()]));
    client.socket.send(Buffer.alloc(1024 * 1024 + 1));
    expect(await client.closed).toBe(1009);
  });

  it('ends sessions with 1001 when the gateway shuts down', async () => {
    const worker = await liveWorker();
    const gateway = await liveGateway([worker]);
    const [idle, busy] = [await connect(gateway), await connect(gateway)];
    busy.socket.send(PCM_100_MS);
    busy.send({ type: 'input_audio_buffer.commit' });
    const stream = await until(() => worker.streams[0], LATE_MS, 'a stream');
    const isClosed = gateway.close();
    expect(await idle.closed).toBe(1001);
    stream.say('FINAL', { text: 'the end' });
    stream.say('ITEM_DONE');
    expect(await busy.next(COMPLETED)).toMatchObject({ transcript: 'the end' });
    expect(await busy.closed).toBe(1001);
    await isClosed;
  });
});

describe('the upgrade to a realtime session', () => {
  it('refuses unknown models, other intents, foreign pages and missing handshakes', async () => {
    const gateway = await liveGateway([await liveWorker()]);
    await connect(gateway);
    const refused = async (query: string, headers = {}) =>
      (await tryConnect(gateway, query, headers).catch((error: Error) => error)) as Error;
    expect((await refused('model=nobody')).message).toContain('404');
    expect((await refused('intent=conversation')).message).toContain('400');
    expect((await refused('')).message).toContain('400');
    const foreign = { origin: 'https://example.com' };
    expect((await refused('model=whisper-1', foreign)).message).toContain('403');
    expect((await fetch(`${gateway.url}/v1/realtime?model=whisper-1`)).status).toBe(426);
  });

  it('answers 503 if all streams are in use, and lets the next one in when one ends', async () => {
    const worker = await liveWorker({}, { maxStreams: 1 });
    const gateway = await liveGateway([worker]);
    const first = await connect(gateway);
    const error = await tryConnect(gateway, 'model=whisper-1').catch((one: Error) => one);
    expect((error as Error).message).toContain('503');
    const later = await tryConnect(gateway, 'intent=transcription');
    later.send(update({ transcription: { model: 'whisper-1' } }));
    expect(await later.next('error')).toMatchObject({ error: { code: 'no_capacity' } });
    expect(await later.closed).toBe(1013);
    first.socket.close();
    await connect(gateway);
  });

  it('chooses the subprotocol that is not the key', async () => {
    const gateway = await liveGateway([await liveWorker()]);
    await connect(gateway);
    const client = await tryConnect(gateway, 'model=whisper-1', {}, [
      'realtime',
      'openai-insecure-api-key.sk-1',
    ]);
    expect(client.socket.protocol).toBe('realtime');
  });

  it('leaves requests alone that offer another protocol', async () => {
    const gateway = await liveGateway([await liveWorker()]);
    const status = await new Promise((resolve, reject) => {
      const headers = { connection: 'Upgrade', upgrade: 'h2c', 'content-type': 'application/json' };
      httpRequest(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers })
        .once('response', (response) => resolve(response.resume().statusCode))
        .once('error', reject)
        .end(JSON.stringify({ model: 'unknown', messages: [] }));
    });
    expect(status).toBe(404);
  });
});
