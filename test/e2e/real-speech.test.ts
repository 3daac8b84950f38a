import { connect as connectTcp } from 'node:net';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { runAudioCommand } from '../cli/audio/run-audio-command';
import {
  findAudioEngine,
  ENGINE_START_MS,
  startAudioEngine,
  type AudioEngine,
} from '../support/audio-engine';
import { startGatewayProcess, type GatewayProcess } from '../support/gateway-process';
import { startRecordingBackend, type RecordingBackend } from '../support/recording-backend';
import { STACK_START_MS, startStack, type TestStack } from '../support/stack';
import { until } from '../support/until';
import { wordsOf } from './audio-calls';
import { findPython } from './python-client';
import { runRequests } from './run-batch';

/** What espeak-ng speaks comes back from Whisper as the same words, through every way of the product. */

const [SPEAKS, HEARS] = ['espeak-ng', 'whisper-tiny.en'];
const SENTENCE = 'please transcribe this recording of a meeting about the weather';
const { python, skipped } = findAudioEngine();
const TEST_MS = 120_000;
/** 24 kHz, 16 bits. */
const PCM_BYTES_PER_100_MS = 4_800;

(skipped === '' ? describe : describe.skip)(`real speech through the gateway${skipped}`, () => {
  let engine: AudioEngine;
  let backend: RecordingBackend;
  let gateway: GatewayProcess;
  let client: OpenAI;

  beforeAll(async () => {
    engine = await startAudioEngine(python, ['--slots', '2']);
    backend = await startRecordingBackend();
    gateway = await startGatewayProcess({
      backends: [backend.url],
      settings: { audio: { workers: [{ address: engine.address }] } },
    });
    client = new OpenAI({ apiKey: 'sk-1', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const isServed = async () => (await client.models.list()).data.some(({ id }) => id === HEARS);
    await until(isServed, ENGINE_START_MS, 'a gateway that knows the audio worker');
  }, ENGINE_START_MS + STACK_START_MS);
  afterAll(async () => {
    await gateway?.stop();
    await backend?.close();
    await engine?.kill();
  }, 60_000);

  const spoken = async (input: string, format: 'mp3' | 'wav' | 'pcm'): Promise<Buffer> => {
    const voice = { model: SPEAKS, voice: 'en-us' };
    const answer = await client.audio.speech.create({ ...voice, input, response_format: format });
    return Buffer.from(await answer.arrayBuffer());
  };

  it(
    'is the same words with the SDK for Node, whole and streamed',
    async () => {
      const file = await OpenAI.toFile(await spoken(SENTENCE, 'mp3'), 'talk.mp3');
      const whole = await client.audio.transcriptions.create({ model: HEARS, file });
      expect(wordsOf(whole.text)).toBe(SENTENCE);
      const stream = await client.audio.transcriptions.create({ model: HEARS, file, stream: true });
      let text = '';
      for await (const event of stream)
        if (event.type === 'transcript.text.delta') text += event.delta;
      expect(wordsOf(text)).toBe(SENTENCE);
      const timed = await client.audio.transcriptions.create({
        ...{ model: HEARS, file },
        response_format: 'verbose_json',
        timestamp_granularities: ['word'],
      });
      expect(wordsOf((timed.words ?? []).map(({ word }) => word).join(' '))).toBe(SENTENCE);
    },
    TEST_MS,
  );

  it(
    'is the same words live',
    async () => {
      const audio = await spoken(SENTENCE, 'pcm');
      const { port } = new URL(gateway.url);
      const sdk = new OpenAI({ apiKey: 'sk-1', baseURL: `https://127.0.0.1:${port}/v1` });
      // The class always uses TLS, which a proxy before the gateway would end.
      const options = { createConnection: () => connectTcp(Number(port), '127.0.0.1') } as object;
      const realtime = new OpenAIRealtimeWS({ model: HEARS, options }, sdk);
      const seen = { deltas: '', completed: '', errors: [] as string[] };
      realtime.on('error', ({ message }) => seen.errors.push(message));
      realtime.on('conversation.item.input_audio_transcription.delta', ({ delta }) => {
        seen.deltas += delta ?? '';
      });
      realtime.on('conversation.item.input_audio_transcription.completed', ({ transcript }) => {
        seen.completed = transcript;
      });
      realtime.on('session.created', () => {
        for (let at = 0; at < audio.length; at += PCM_BYTES_PER_100_MS) {
          const piece = audio.subarray(at, at + PCM_BYTES_PER_100_MS).toString('base64');
          realtime.send({ type: 'input_audio_buffer.append', audio: piece });
        }
        realtime.send({ type: 'input_audio_buffer.commit' });
      });
      await until(() => seen.completed !== '' || seen.errors.length > 0, TEST_MS, 'the transcript');
      realtime.close();
      expect(seen.errors).toEqual([]);
      expect(wordsOf(seen.completed)).toBe(SENTENCE);
      expect(seen.deltas).toBe(seen.completed);
    },
    TEST_MS,
  );

  const sdk = findPython();
  (sdk === null ? it.skip : it)(
    'is the same words with the SDK for Python, whole, streamed and live',
    () => {
      const args = [join(__dirname, 'real-speech.py'), gateway.url, SPEAKS, HEARS, SENTENCE];
      const done = spawnSync(String(sdk), args, { encoding: 'utf8', timeout: TEST_MS });
      expect(done.stderr).toBe('');
      const heard = JSON.parse(done.stdout) as Record<string, string>;
      const words = Object.entries(heard).map(([way, text]) => [way, wordsOf(text)]);
      expect(words).toEqual([
        ['whole', SENTENCE],
        ['streamed', SENTENCE],
        ['live', SENTENCE],
      ]);
    },
    TEST_MS,
  );

  it(
    'is the same words from the command line, as a file and live',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'nightshift-speech-'));
      const talk = join(folder, 'talk.wav');
      const run = async (...args: string[]): Promise<string> => {
        const ran = await runAudioCommand([...args, '--gateway-url', `${gateway.url}/v1`]);
        expect(ran).toMatchObject({ code: 0 });
        return wordsOf(ran.stdout);
      };
      try {
        await run('speak', SENTENCE, '--model', SPEAKS, '--voice', 'en-us', '--out', talk);
        expect(await run('transcribe', talk, '--model', HEARS)).toBe(SENTENCE);
        expect(await run('stream', talk, '--model', HEARS, '--speed', '0')).toBe(SENTENCE);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    TEST_MS,
  );

  it(
    'is the same words in batches: one speaks, the other one listens',
    async () => {
      const sentences = ['go forward ten meters', SENTENCE];
      const stack: TestStack = await startStack({
        config: {
          global_inference_gateway: { url: gateway.url, api_key_file: gateway.tokenFile },
        },
      });
      try {
        const lines = sentences.map((input) => ({
          body: { model: SPEAKS, voice: 'en-us', input },
        }));
        const said = await runRequests(stack.client, lines, { endpoint: '/v1/audio/speech' });
        const recordings = said.output.map(({ response }) => String(response?.body['audio']));
        expect(said.errors).toEqual([]);
        const upload = await stack.client.files.create({
          file: await OpenAI.toFile(Buffer.from(recordings[0] ?? '', 'base64'), 'first.mp3'),
          purpose: 'user_data',
        });
        const requests = [
          { body: { model: HEARS, file_id: upload.id } },
          { body: { model: HEARS, file_data: recordings[1], filename: 'second.mp3' } },
        ];
        const heard = await runRequests(stack.client, requests, {
          endpoint: '/v1/audio/transcriptions',
        });
        expect(heard.errors).toEqual([]);
        const texts = heard.output.map(({ response }) => wordsOf(String(response?.body['text'])));
        expect(texts).toEqual(sentences);
      } finally {
        await stack.stop();
        stack.remove();
      }
    },
    STACK_START_MS + TEST_MS,
  );
});
