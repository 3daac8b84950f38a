import { createHash } from 'node:crypto';
import { status as CODE } from '@grpc/grpc-js';
import type { CallEnd } from '../../../inference/audio/audio-calls';
import type { Transcription } from '../../../core/audio/transcription';
import type { WireFilePart, WireTranscript } from '../../../proto/audio-messages';
import { type BatchRpc, failWith, type FileRpc, type SpeechRpc } from '../../support/audio-server';
import { until } from '../../support/until';
import { audioOf, fileCall, LATE_MS, said, type WorkerScene, workerScene } from './worker-scene';

let scene: WorkerScene;
afterEach(() => scene.close());

/** Answers with the hash of the bytes. */
function hashes(call: FileRpc): void {
  const hash = createHash('sha256');
  call.on('data', (part: WireFilePart) => {
    if ('chunk' in part) hash.update(part.chunk);
  });
  call.on('end', () => {
    call.write({ result: { text: hash.digest('hex') } as WireTranscript });
    call.end();
  });
}

const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('a call for one recording', () => {
  it('sends every byte in pieces of at most 256 KiB, with options, id and metadata first', async () => {
    const bytes = Buffer.alloc(1_000_000, 'x');
    const parts: WireFilePart[] = [];
    const metadata: unknown[] = [];
    scene = await workerScene({
      file: (call) => {
        metadata.push(call.metadata.get('x-request-id')[0], call.metadata.get('traceparent')[0]);
        call.on('data', (part: WireFilePart) => parts.push(part));
        hashes(call);
      },
    });
    const call = fileCall(bytes, { metadata: { traceparent: '00-1-2-03' } });
    expect(said(await scene.worker.transcribe(call).ended)).toBe(sha(bytes));
    expect(metadata).toEqual(['req_1', '00-1-2-03']);
    expect(parts[0]).toMatchObject({ options: { model: 'whisper-1', size: bytes.length } });
    const sizes = parts.slice(1).map((part) => ('chunk' in part ? part.chunk.length : -1));
    expect(sizes).toEqual([262_144, 262_144, 262_144, 213_568]);
  });

  it('hands over deltas and segments as they come, and the whole result', async () => {
    const word = { text: 'a', startS: 0.5, endS: 1, probability: 0.9 };
    const segment = {
      ...{ id: 0, startS: 0.5, endS: 2, text: 'a b', avgLogprob: -0.2, compressionRatio: 1 },
      ...{ noSpeechProb: 0.1, temperature: 0, seek: 7, tokens: [1, 2] },
    };
    scene = await workerScene({
      file: (call) => {
        call.write({ delta: 'a ' });
        call.write({ delta: 'b' });
        call.write({ segment });
        const usage = { audioSeconds: 2, inputTokens: 3, outputTokens: 4 };
        const result = { text: 'a b', language: 'en', durationS: 2.5, segments: [segment] };
        call.write({ result: { ...result, words: [word], usage } });
        call.end();
      },
    });
    const heard: unknown[] = [];
    const end = await scene.worker.transcribe(
      fileCall(undefined, {
        onDelta: (text) => heard.push(text),
        onSegment: ({ text, startSec }) => heard.push([text, startSec]),
      }),
    ).ended;
    expect(heard).toEqual(['a ', 'b', ['a b', 0.5]]);
    expect(end).toEqual({
      ok: true,
      result: {
        ...{ text: 'a b', language: 'en', durationSec: 2.5 },
        segments: [
          {
            ...{ text: 'a b', startSec: 0.5, endSec: 2 },
            details: {
              ...{ seek: 7, tokens: [1, 2], temperature: 0, avgLogprob: -0.2 },
              ...{ compressionRatio: 1, noSpeechProb: 0.1 },
            },
          },
        ],
        words: [{ text: 'a', startSec: 0.5, endSec: 1 }],
        usage: { audioSec: 2, inputTokens: 3, outputTokens: 4 },
      },
    });
  });

  it.each([
    [CODE.UNAVAILABLE, 'lost'],
    [CODE.FAILED_PRECONDITION, 'lost'],
    [CODE.CANCELLED, 'lost'],
    [CODE.DEADLINE_EXCEEDED, 'timeout'],
    [CODE.RESOURCE_EXHAUSTED, 'exhausted'],
    [CODE.INVALID_ARGUMENT, 'invalid'],
    [CODE.NOT_FOUND, 'not_found'],
    [CODE.INTERNAL, 'failed'],
    [CODE.UNKNOWN, 'failed'],
    [CODE.UNIMPLEMENTED, 'failed'],
  ])('takes the status %s for %s', async (code, kind) => {
    scene = await workerScene({ file: (call) => failWith(call, code, 'x'.repeat(900)) });
    const end = await scene.worker.transcribe(fileCall()).ended;
    expect(end).toMatchObject({ ok: false, failure: { kind } });
    expect(end.ok || end.failure.message.length).toBe(500);
  });

  it('gives clients the words of the worker for what they got wrong', async () => {
    scene = await workerScene({
      file: (call) => failWith(call, CODE.INVALID_ARGUMENT, 'no audio in it'),
    });
    const end = await scene.worker.transcribe(fileCall()).ended;
    expect(end).toEqual({ ok: false, failure: { kind: 'invalid', message: 'no audio in it' } });
  });

  it('fails if the worker ends well without a result', async () => {
    scene = await workerScene({ file: (call) => call.end() });
    expect(said(await scene.worker.transcribe(fileCall()).ended)).toBe('failed: failed');
  });

  it('ends at its time limit', async () => {
    scene = await workerScene({ file: () => undefined });
    const call = fileCall(undefined, { timeoutMs: 100 });
    expect(said(await scene.worker.transcribe(call).ended)).toBe('failed: timeout');
  });

  it('ends once when it is aborted twice, and the worker sees that', async () => {
    let seen = 0;
    let begun = false;
    scene = await workerScene({
      file: (call) => {
        begun = true;
        call.on('cancelled', () => seen++);
      },
    });
    const call = scene.worker.transcribe(fileCall());
    await until(() => begun, LATE_MS, 'the call');
    call.abort();
    call.abort();
    expect(said(await call.ended)).toBe('failed: aborted');
    await until(() => seen === 1, LATE_MS, 'the worker to see the abort');
  });

  it('ends as a failure of its source if the recording cannot be read', async () => {
    scene = await workerScene({ file: hashes });
    const broken = {
      size: 9,
      async *read() {
        yield Buffer.from('abc');
        throw new Error('the disk is gone');
      },
    };
    const end = await scene.worker.transcribe(fileCall(undefined, { audio: broken })).ended;
    expect(end).toEqual({ ok: false, failure: { kind: 'source', message: 'the disk is gone' } });
  });

  it('ends if its owner cannot take a delta', async () => {
    scene = await workerScene({ file: (call) => void call.write({ delta: 'a' }) });
    const onDelta = () => {
      throw new Error('full');
    };
    const end = await scene.worker.transcribe(fileCall(undefined, { onDelta })).ended;
    expect(end).toEqual({ ok: false, failure: { kind: 'failed', message: 'full' } });
  });

  it('reads no further than the worker takes, and closes the source of a call that ends', async () => {
    let taken = 0;
    let isClosed = false;
    const endless = {
      size: 2 ** 40,
      async *read() {
        try {
          for (; taken < 10_000; taken++) yield Buffer.alloc(65_536);
        } finally {
          isClosed = true;
        }
      },
    };
    scene = await workerScene({ file: (call) => call.pause() });
    const call = scene.worker.transcribe(fileCall(undefined, { audio: endless }));
    let before = -1;
    await until(
      () => {
        const isStill = taken === before && taken > 0;
        before = taken;
        return isStill;
      },
      LATE_MS,
      'the source to rest',
      300,
    );
    expect(taken).toBeLessThan(200);
    call.abort();
    await call.ended;
    await until(() => isClosed, LATE_MS, 'the source to be closed');
  });

  it('takes figures that cannot be for 0', async () => {
    const odd = [NaN, Infinity, -1, 1e300];
    const words = odd.map((time) => ({ text: 'w', startS: time, endS: time, probability: 1 }));
    const segments = odd.map((figure, id) => ({
      ...{ id, text: 's', startS: figure, endS: 2, avgLogprob: figure, tokens: [] },
      ...{ compressionRatio: 1, noSpeechProb: 0, temperature: 0, seek: 0 },
    }));
    const usage = { audioSeconds: Infinity, inputTokens: 0, outputTokens: 0 };
    scene = await workerScene({
      file: (call) => {
        call.write({ result: { text: 't', durationS: NaN, segments, words, usage } as never });
        call.end();
      },
    });
    const end = await scene.worker.transcribe(fileCall()).ended;
    const { result } = end as CallEnd<Transcription> & { ok: true };
    expect([result.durationSec, result.usage?.audioSec]).toEqual([0, 0]);
    expect(result.words.map(({ startSec, endSec }) => [startSec, endSec]).flat()).toEqual(
      new Array(8).fill(0),
    );
    expect(result.segments.map(({ startSec, endSec }) => [startSec, endSec])).toEqual(
      new Array(4).fill([0, 2]),
    );
    expect(result.segments.map(({ details }) => details?.avgLogprob)).toEqual([0, 0, -1, 1e300]);
  });

  it('takes a result of 29 MiB', async () => {
    const text = 'y'.repeat(29 * 2 ** 20);
    scene = await workerScene({
      file: (call) => {
        call.write({ result: { text } as WireTranscript });
        call.end();
      },
    });
    const end = await scene.worker.transcribe(fileCall()).ended;
    expect(end.ok && end.result.text.length).toBe(text.length);
  });
});

describe('a call for several recordings', () => {
  const items = ['a', 'b', 'c'].map((text) => {
    const { options } = fileCall();
    return { options, audio: audioOf(Buffer.from(text)) };
  });
  const batchCall = (onItem: (index: number, end: CallEnd<Transcription>) => void) => ({
    ...{ requestId: 'batch_1', timeoutMs: 60_000, metadata: {}, items, onItem },
  });

  it('gives each recording its own outcome', async () => {
    scene = await workerScene({
      batch: (call: BatchRpc) => {
        const texts = new Map<number, string>();
        call.on('data', ({ item, part, end }) => {
          if (part !== null && part !== undefined && 'chunk' in part)
            texts.set(item, part.chunk.toString());
          if (!end) return;
          if (item === 1) call.write({ item, failure: { code: 3, message: 'not audio' } });
          else {
            const result = { text: texts.get(item) ?? '' } as WireTranscript;
            call.write({ item, event: { event: 'result', result } });
          }
        });
        call.on('end', () => call.end());
      },
    });
    const ends: string[] = [];
    const call = scene.worker.transcribeBatch(
      batchCall((index, end) => ends.push(`${index} ${said(end)}`)),
    );
    expect(await call.ended).toEqual({ ok: true, result: null });
    expect(ends).toEqual(['0 a', '1 failed: invalid', '2 c']);
  });

  it('fails if the worker forgets a recording, and counts the first of two outcomes', async () => {
    scene = await workerScene({
      batch: (call: BatchRpc) => {
        for (const text of ['first', 'second']) {
          call.write({ item: 0, event: { event: 'result', result: { text } as WireTranscript } });
        }
        call.write({ item: 9, failure: { code: 3, message: 'no such item' } });
        call.end();
      },
    });
    const ends: string[] = [];
    const call = scene.worker.transcribeBatch(
      batchCall((index, end) => ends.push(`${index} ${said(end)}`)),
    );
    expect(await call.ended).toMatchObject({ ok: false, failure: { kind: 'failed' } });
    expect(ends).toEqual(['0 first']);
  });
});

describe('a call for speech', () => {
  const request = {
    ...{ requestId: 's', model: 'tts-1', input: 'hi', voice: 'alloy', format: 'pcm' },
    ...{ speed: 1, instructions: '', language: '' },
  };
  const speechCall = (onChunk: (audio: Buffer) => void | Promise<void>) => ({
    ...{ requestId: 's', timeoutMs: 60_000, metadata: {}, request },
    onChunk: ({ audio }: { audio: Buffer }) => onChunk(audio),
  });

  it('reads one piece at a time, so that a slow client slows the worker down', async () => {
    const pieces = 400;
    let written = 0;
    scene = await workerScene({
      speech: (call: SpeechRpc) => {
        const next = (): void => {
          while (written < pieces) {
            written++;
            if (!call.write({ audio: Buffer.alloc(100_000) })) {
              call.once('drain', next);
              return;
            }
          }
          call.end();
        };
        next();
      },
    });
    let bytes = 0;
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    let busy = 0;
    const call = scene.worker.synthesize(
      speechCall(async (audio) => {
        expect(++busy).toBe(1);
        await gate;
        bytes += audio.length;
        busy--;
      }),
    );
    let before = -1;
    await until(
      () => {
        const isStill = written === before && written > 0;
        before = written;
        return isStill;
      },
      LATE_MS,
      'the worker to rest',
      300,
    );
    expect(written).toBeLessThan(pieces);
    release();
    expect(await call.ended).toEqual({ ok: true, result: null });
    expect(bytes).toBe(pieces * 100_000);
  });

  it('ends at once when it is aborted while a piece is open', async () => {
    scene = await workerScene({
      speech: (call: SpeechRpc) => {
        for (let i = 0; i < 50; i++) call.write({ audio: Buffer.alloc(1_000) });
      },
    });
    let calls = 0;
    const call = scene.worker.synthesize(
      speechCall(() => {
        calls++;
        return new Promise<void>(() => undefined);
      }),
    );
    await until(() => calls === 1, LATE_MS, 'the first piece');
    call.abort();
    expect(await call.ended).toMatchObject({ ok: false, failure: { kind: 'aborted' } });
    expect(calls).toBe(1);
  });

  it('takes times that cannot be for 0', async () => {
    const usage = { audioSeconds: NaN, inputTokens: 1, outputTokens: 2 };
    scene = await workerScene({
      speech: (call: SpeechRpc) => {
        call.write({ audio: Buffer.from('a'), durationS: Infinity, usage });
        call.end();
      },
    });
    const chunks: object[] = [];
    const { request, ...how } = speechCall(() => undefined);
    const onChunk = (chunk: object) => void chunks.push(chunk);
    await scene.worker.synthesize({ ...how, request, onChunk }).ended;
    expect(chunks).toMatchObject([{ durationS: 0, usage: { ...usage, audioSeconds: 0 } }]);
  });

  it('fails without a byte of audio', async () => {
    scene = await workerScene({ speech: (call: SpeechRpc) => call.end() });
    const call = scene.worker.synthesize(speechCall(() => undefined));
    expect(await call.ended).toMatchObject({ ok: false, failure: { kind: 'failed' } });
  });
});
