import { createHash } from 'node:crypto';
import type { CallEnd } from '../../../inference/audio/audio-calls';
import type { Transcription } from '../../../core/audio/transcription';
import { AudioWorker } from '../../../inference/audio/audio-worker';
import { audioSection } from '../../../platform/config-audio';
import { createLogger } from '../../../platform/logger';
import type { WireTranscriptEvent } from '../../../proto/audio-messages';
import { type AudioSimulator, startAudioSimulator } from '../../../simulator/audio/audio-worker';
import { fileCall, audioOf, LATE_MS, said } from '../../inference/audio/worker-scene';
import { until } from '../../support/until';

let simulator: AudioSimulator;
let worker: AudioWorker;

beforeEach(async () => {
  simulator = await startAudioSimulator({
    ...{ host: '127.0.0.1', port: 0 },
    settings: { base_ms: 1, item_ms: 0 },
  });
  const config = audioSection.parse({
    workers: [{ address: simulator.address }],
    grpc: { health_interval: '100ms', health_timeout: '5s' },
  });
  worker = new AudioWorker({
    ...{ worker: { address: simulator.address, tls: false, tls_insecure_skip_verify: false } },
    ...{ grpc: config.grpc, cancelTimeoutMs: 5_000, secretsDir: '/nowhere' },
    logger: createLogger({ level: 'error', format: 'json' }, 'test'),
    onChange: () => undefined,
  });
  await until(() => worker.isReady, LATE_MS, 'the worker to be ready');
});
afterEach(async () => {
  await worker.close();
  simulator.close();
});

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex').slice(0, 12);
const textOf = async (bytes: Buffer) =>
  said(await worker.transcribe(fileCall(Buffer.from(bytes))).ended);

it('gives equal words for equal bytes, and says whose they are and that they are simulated', async () => {
  const [a, b] = [Buffer.alloc(64_000, 'a'), Buffer.alloc(64_000, 'b')];
  const first = await textOf(a);
  expect(first).toMatch(new RegExp(`^simulated ${hashOf(a)} \\w+`));
  expect(await textOf(a)).toBe(first);
  expect(await textOf(b)).not.toBe(first);
});

it('gives segments, words and deltas to those who want them', async () => {
  const bytes = Buffer.alloc(320_000);
  const wants = { wantSegments: true, wantWords: true, wantDeltas: true };
  const call = fileCall(bytes);
  let heard = '';
  const options = { ...call.options, ...wants };
  const end = await worker.transcribe({ ...call, options, onDelta: (text) => (heard += text) })
    .ended;
  if (!end.ok) throw new Error(end.failure.message);
  const { text, segments, words, durationSec } = end.result;
  expect([heard, words.map((word) => word.text).join(' ')]).toEqual([text, text]);
  expect(segments.map((segment) => segment.text).join(' ')).toBe(text);
  expect([durationSec, segments.at(-1)?.endSec]).toEqual([10, 10]);
});

it('answers each recording of a batch', async () => {
  const bytes = ['a', 'b', 'c'].map((text) => Buffer.alloc(1_000, text));
  const items = bytes.map((one) => ({ options: fileCall(one).options, audio: audioOf(one) }));
  const texts: string[] = [];
  const onItem = (index: number, end: CallEnd<Transcription>) => (texts[index] = said(end));
  const call = { requestId: 'b', timeoutMs: 60_000, metadata: {}, items, onItem };
  expect(await worker.transcribeBatch(call).ended).toMatchObject({ ok: true });
  expect(texts.map((text) => text.split(' ')[1])).toEqual(bytes.map(hashOf));
  expect(simulator.stats.batch_sizes).toEqual([3]);
});

it('speaks in pieces with the header of the format', async () => {
  const speak = async (format: string) => {
    const request = {
      ...{ requestId: 's', model: 'tts-1', input: 'Good night.', voice: 'alloy', format },
      ...{ speed: 1, instructions: '', language: '' },
    };
    const pieces: Buffer[] = [];
    const onChunk = ({ audio }: { audio: Buffer }) => void pieces.push(audio);
    const how = { requestId: 's', timeoutMs: 60_000, metadata: {}, request, onChunk };
    expect(await worker.synthesize(how).ended).toMatchObject({ ok: true });
    return Buffer.concat(pieces);
  };
  const [pcm, wav] = [await speak('pcm'), await speak('wav')];
  // 11 characters of 60 ms, 24,000 samples a second of 2 bytes.
  expect(pcm).toHaveLength(31_680);
  expect([wav.subarray(0, 4).toString(), wav.readUInt32LE(40)]).toEqual(['RIFF', 0xffffffff]);
  expect(wav.subarray(44)).toEqual(pcm);
});

it('transcribes live audio by commits, also silence', async () => {
  const stream = worker.openStream({});
  const events: WireTranscriptEvent[] = [];
  stream
    .on('data', (event: WireTranscriptEvent) => events.push(event))
    .on('error', () => undefined);
  const options = {
    ...{ sessionId: 'x', model: 'whisper-1', language: '', prompt: '', encoding: 'pcm16' },
    ...{ sampleRateHz: 24_000, serverVad: false, vadThreshold: 0, prefixMs: 0, silenceMs: 0 },
    ...{ wantPartials: true, wantWords: false, startMs: 0 },
  };
  stream.write({ options });
  stream.write({ audio: Buffer.alloc(48_000 * 2, 7) });
  stream.write({ commit: true });
  stream.write({ commit: true });
  stream.write({ last: true });
  stream.end();
  await until(() => events.filter(({ kind }) => kind === 'ITEM_DONE').length === 2, LATE_MS, 'two');
  expect(events.map(({ kind }) => kind)).toEqual(['PARTIAL', 'FINAL', 'ITEM_DONE', 'ITEM_DONE']);
  const [partial, final] = events;
  expect(final?.text.startsWith(partial?.text.slice(0, partial.stableChars) ?? '?')).toBe(true);
});

it('refuses calls above its slots, fails and hangs as it is told', async () => {
  simulator.configure({ slots: 1, hang: true });
  const hanging = worker.transcribe(fileCall());
  await until(() => simulator.stats.running === 1, LATE_MS, 'the call to run');
  expect(await textOf(Buffer.from('x'))).toBe('failed: exhausted');
  hanging.abort();
  await hanging.ended;
  await until(() => simulator.stats.aborted === 1, LATE_MS, 'the abort to be seen');
  simulator.configure({ hang: false, failure_rate: 1, failure_code: 3 });
  expect(await textOf(Buffer.from('x'))).toBe('failed: invalid');
  expect(() => simulator.configure({ slots: -1 })).toThrow('audio.slots');
  expect(() => simulator.configure({ slot: 1 })).toThrow('audio');
});

it('takes no call for complete whose other side aborts it', async () => {
  const endless = {
    size: 2_000_000,
    async *read() {
      yield Buffer.alloc(1_000);
      await new Promise(() => undefined);
    },
  };
  const options = { ...fileCall().options, size: endless.size };
  const call = worker.transcribe({ ...fileCall(), options, audio: endless });
  const stream = worker.openStream({}).on('error', () => undefined);
  stream.write({ options: { ...options, sessionId: 'live' } as never });
  const { calls } = simulator.stats;
  await until(() => calls.file === 1 && calls.stream === 1, LATE_MS, 'the calls to arrive');
  call.abort();
  stream.cancel();
  await until(() => simulator.stats.aborted === 2, LATE_MS, 'the aborts to be seen');
  expect(Object.keys(simulator.stats.aborted_at_ms).sort()).toEqual(['live', 'req_1']);
  expect(simulator.stats.recordings).toEqual({});
});

it('stops a call that is cancelled, unless it is deaf', async () => {
  simulator.configure({ base_ms: 3_600_000 });
  const call = worker.transcribe(fileCall());
  await until(() => simulator.stats.running === 1, LATE_MS, 'the call to run');
  expect([await worker.cancel('other'), await worker.cancel('req_1')]).toEqual([false, true]);
  expect(said(await call.ended)).toBe('failed: lost');
  expect(simulator.stats.running).toBe(0);
});

it('breaks all connections when it crashes, and is there again', async () => {
  simulator.configure({ crash_after: 1 });
  expect(await textOf(Buffer.from('x'))).toBe('failed: lost');
  simulator.configure({ crash_after: 0 });
  await until(() => worker.isReady, LATE_MS, 'the worker to be ready again');
  expect(await textOf(Buffer.from('x'))).toContain('simulated');
});
