import { status } from '@grpc/grpc-js';
import type { AudioClient } from '../../inference/audio/audio-client';
import {
  findAudioEngine,
  ENGINE_START_MS,
  runAudioEngine,
  startAudioEngine,
  type AudioEngine,
} from '../support/audio-engine';
import { until } from '../support/until';
import {
  audioClient,
  cancel,
  health,
  sendBatch,
  sendFile,
  sendStream,
  speak,
  toM4a,
  wordsOf,
  WHISPER,
} from './audio-calls';

/** The example audio worker, with real speech: espeak-ng speaks, Whisper recognizes it. */

const COMMAND = 'go forward ten meters';
const REQUEST = 'please transcribe this recording of a meeting about the weather';
/** Some minutes of speech: recognizing it takes much longer than a test may take. */
const LECTURE = Array.from(
  { length: 40 },
  (_, i) => `In the year ${1800 + 3 * i} there were ${i + 2} ships in the harbor of the old town.`,
).join(' ');
const { python, skipped } = findAudioEngine();
const CALL_MS = 60_000;
const SILENCE = Buffer.alloc(48_000);

(skipped === '' ? describe : describe.skip)(`the example audio worker${skipped}`, () => {
  let engine: AudioEngine;
  let client: AudioClient;

  beforeAll(async () => {
    engine = await startAudioEngine(python, ['--slots', '1', '--max-batch', '4']);
    client = audioClient(engine.address);
  }, ENGINE_START_MS);
  afterAll(async () => {
    client?.close();
    await engine?.kill();
  });

  it('states what its models can do', async () => {
    const { status: state, slots, models } = await health(client);
    expect({ state, slots }).toEqual({ state: 'SERVING', slots: 1 });
    expect(models[0]).toMatchObject({ name: WHISPER, tasks: ['TRANSCRIBE'], languages: ['en'] });
    expect(models[1]?.voices).toContain('en-us');
  });

  it.each([COMMAND, REQUEST])(
    'recognizes what it said, in every format: %s',
    async (text) => {
      const wav = await speak(client, text, 'wav');
      expect(wav.subarray(4, 8).toString('hex') + wav.subarray(40, 44).toString('hex')).toBe(
        'f'.repeat(16),
      );
      const recordings = [wav, toM4a(python, wav)];
      for (const format of ['mp3', 'opus', 'flac', 'aac']) {
        recordings.push(await speak(client, text, format));
      }
      for (const recording of recordings) {
        expect(wordsOf((await sendFile(client, recording).result).text)).toBe(text);
      }
    },
    CALL_MS,
  );

  it(
    'returns words, segments and deltas if they are wanted',
    async () => {
      const wav = await speak(client, REQUEST, 'wav');
      const wanted = { wantWords: true, wantSegments: true, wantDeltas: true };
      const call = sendFile(client, wav, wanted);
      const { text, words, segments, durationS, language, usage } = await call.result;
      expect(call.deltas.join('')).toBe(text);
      expect(wordsOf(words.map((word) => word.text).join(' '))).toBe(REQUEST);
      expect(words.every(({ startS, endS }) => startS <= endS && endS <= durationS)).toBe(true);
      expect(wordsOf(segments.map((segment) => segment.text).join(''))).toBe(REQUEST);
      expect({ language, usage }).toMatchObject({
        language: 'en',
        usage: { audioSeconds: durationS },
      });
      const plain = sendFile(client, wav);
      expect(await plain.result).toMatchObject({ words: [], segments: [] });
      expect(plain.deltas).toEqual([]);
    },
    CALL_MS,
  );

  it.each([
    ['a translation', { task: 'TRANSLATE' }, status.INVALID_ARGUMENT, 'cannot translate'],
    ['another language', { language: 'de' }, status.INVALID_ARGUMENT, 'only English'],
    ['an unknown model', { model: 'whisper-9' }, status.NOT_FOUND, 'whisper-9'],
  ] as const)('refuses %s', async (_, options, code, message) => {
    const details: unknown = expect.stringContaining(message);
    await expect(sendFile(client, SILENCE, options).result).rejects.toMatchObject({
      code,
      details,
    });
  });

  it.each([
    ['garbage', Buffer.from('garbage'.repeat(1_000))],
    ['an empty file', Buffer.alloc(0)],
    ['a playlist that names a file', Buffer.from('ffconcat version 1.0\nfile /etc/hostname\n')],
    [
      'a WAV without samples',
      Buffer.from(`524946462400000057415645666d7420${'00'.repeat(28)}`, 'hex'),
    ],
  ])('answers %s with INVALID_ARGUMENT and goes on', async (_, recording) => {
    const code = status.INVALID_ARGUMENT;
    await expect(sendFile(client, recording).result).rejects.toMatchObject({ code });
    expect(await health(client)).toMatchObject({ status: 'SERVING', inFlight: 0 });
  });

  it(
    'answers each recording of a batch, also beside a damaged one',
    async () => {
      const recordings = [await speak(client, COMMAND, 'mp3'), Buffer.from('damaged')];
      recordings.push(await speak(client, REQUEST, 'flac'));
      const events = await sendBatch(client, recordings);
      const texts = events.map(({ item, event }) => [item, wordsOf(event?.result?.text ?? '')]);
      expect(texts).toEqual([
        [0, COMMAND],
        [1, ''],
        [2, REQUEST],
      ]);
      expect(events[1]?.failure?.code).toBe(status.INVALID_ARGUMENT);
    },
    CALL_MS,
  );

  it(
    'transcribes live audio at each commit, and answers silence too',
    async () => {
      const audio = await speak(client, REQUEST, 'pcm');
      const end = { commit: true, last: true };
      const events = await sendStream(client, audio, { end, startMs: 5_000 });
      expect(events.map(({ kind }) => kind)).toEqual(['FINAL', 'ITEM_DONE']);
      expect(wordsOf(events[0]?.text ?? '')).toBe(REQUEST);
      expect(events[0]?.startMs).toBe(5_000);
      const silent = await sendStream(client, SILENCE, { end });
      expect(silent.map(({ kind }) => kind)).toEqual(['ITEM_DONE']);
    },
    CALL_MS,
  );

  it(
    'finds the turns of live audio itself',
    async () => {
      const audio = await speak(client, REQUEST, 'pcm');
      const twice = Buffer.concat([SILENCE, audio, SILENCE, SILENCE, audio, SILENCE]);
      const vad = { serverVad: true, silenceMs: 500, prefixMs: 300 };
      const events = await sendStream(client, twice, { ...vad, end: { last: true } });
      const turn = ['SPEECH_STARTED', 'SPEECH_STOPPED', 'FINAL', 'ITEM_DONE'];
      expect(events.map(({ kind }) => kind)).toEqual([...turn, ...turn]);
      const texts = events.filter(({ kind }) => kind === 'FINAL').map(({ text }) => wordsOf(text));
      expect(texts).toEqual([REQUEST, REQUEST]);
    },
    CALL_MS,
  );

  it(
    'decodes µ-law of telephones',
    async () => {
      const pcm = await speak(client, REQUEST, 'pcm');
      const audio = Buffer.from(
        Array.from({ length: Math.floor(pcm.length / 6) }, (_, i) =>
          mulawOf(pcm.readInt16LE(6 * i)),
        ),
      );
      const options = { encoding: 'mulaw', sampleRateHz: 8_000, end: { commit: true, last: true } };
      const [final] = await sendStream(client, audio, options);
      expect(wordsOf(final?.text ?? '')).toBe(REQUEST);
    },
    CALL_MS,
  );

  it(
    'refuses a call while its only slot is taken, and ends a cancelled one within a second',
    async () => {
      const lecture = await speak(client, LECTURE, 'mp3');
      const short = await speak(client, COMMAND, 'wav');
      const call = sendFile(client, lecture, { requestId: 'lecture', wantDeltas: true });
      call.result.catch(() => undefined);
      await until(() => call.deltas.length > 0, CALL_MS, 'the first text');
      const code = status.RESOURCE_EXHAUSTED;
      await expect(sendFile(client, SILENCE).result).rejects.toMatchObject({ code });
      const cancelledAt = performance.now();
      expect(await cancel(client, 'lecture')).toMatchObject({ acknowledged: true });
      await expect(call.result).rejects.toMatchObject({ code: status.CANCELLED });
      expect(performance.now() - cancelledAt).toBeLessThan(1_000);
      expect(wordsOf((await sendFile(client, short).result).text)).toBe(COMMAND);
      expect(await cancel(client, 'lecture')).toMatchObject({ acknowledged: false });
      expect(await health(client)).toMatchObject({ inFlight: 0 });
    },
    2 * CALL_MS,
  );

  it('says why it cannot start', () => {
    const [, port = ''] = engine.address.split(':');
    const taken = runAudioEngine(python, { args: ['--port', port] });
    expect({ status: taken.status, stdout: taken.stdout }).toEqual({ status: 1, stdout: '' });
    expect(taken.stderr).toContain(`Cannot listen on 127.0.0.1:${port}`);
    const withoutPackages = runAudioEngine(python, { pythonArgs: ['-S'] });
    expect(withoutPackages.status).toBe(1);
    expect(withoutPackages.stderr).toContain('requirements.txt');
  });
});

(skipped === '' ? describe : describe.skip)(`the end of the example audio worker${skipped}`, () => {
  it(
    'finishes running calls after SIGTERM and takes no new ones',
    async () => {
      const engine = await startAudioEngine(python);
      const client = audioClient(engine.address);
      const speech = await speak(client, LECTURE.slice(0, 700), 'mp3');
      const call = sendFile(client, speech, { wantDeltas: true });
      await until(() => call.deltas.length > 0, CALL_MS, 'the first text');
      const stopped = engine.stop();
      await until(async () => (await health(client)).status === 'DRAINING', CALL_MS, 'DRAINING');
      const late = { code: status.UNAVAILABLE };
      await expect(sendFile(client, SILENCE).result).rejects.toMatchObject(late);
      expect((await call.result).text).toBe(call.deltas.join(''));
      expect(await stopped).toBe(0);
      client.close();
    },
    ENGINE_START_MS + 3 * CALL_MS,
  );

  it.each<[string, string[], (engine: AudioEngine) => Promise<unknown>]>([
    ['it is killed', [], (engine) => engine.kill()],
    ['they outlast the drain', ['--drain-seconds', '1'], (engine) => engine.stop()],
  ])(
    'ends its calls as UNAVAILABLE if %s',
    async (_, args, end) => {
      const engine = await startAudioEngine(python, args);
      const client = audioClient(engine.address);
      const call = sendFile(client, await speak(client, LECTURE, 'mp3'), { wantDeltas: true });
      const lost = expect(call.result).rejects.toMatchObject({ code: status.UNAVAILABLE });
      await until(() => call.deltas.length > 0, CALL_MS, 'the first text');
      await end(engine);
      await lost;
      client.close();
    },
    ENGINE_START_MS + 2 * CALL_MS,
  );
});

/** ITU-T G.711. */
function mulawOf(sample: number): number {
  const magnitude = Math.min(Math.abs(sample), 32_635) + 132;
  const exponent = 31 - Math.clz32(magnitude) - 7;
  const mantissa = (magnitude >> (exponent + 3)) & 15;
  return ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | mantissa) & 0xff;
}
