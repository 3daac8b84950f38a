import { StreamHandle } from '../../../inference/audio/stream-handle';
import type { WireAudioFrame, WireStreamOptions } from '../../../proto/audio-messages';
import { failWith, type StreamRpc } from '../../support/audio-server';
import { until } from '../../support/until';
import { LATE_MS, type WorkerScene, workerScene } from './worker-scene';

jest.setTimeout(60_000);

const OPTIONS: WireStreamOptions = {
  ...{ sessionId: 'sess_1', model: 'whisper-1', language: '', prompt: '', encoding: 'pcm16' },
  ...{ sampleRateHz: 24_000, serverVad: false, vadThreshold: 0, prefixMs: 0, silenceMs: 0 },
  ...{ wantPartials: true, wantWords: false, startMs: 0 },
};

let scene: WorkerScene;
afterEach(() => scene.close());

/** A handle, the frames that the worker got, and its end of the call. */
async function open(onCall: (call: StreamRpc) => void = () => undefined, cancel?: () => null) {
  const frames: WireAudioFrame[] = [];
  const seen: { call: StreamRpc | null; isCancelled: boolean; isEnded: boolean } = {
    ...{ call: null, isCancelled: false, isEnded: false },
  };
  const cancels: string[] = [];
  scene = await workerScene({
    stream: (call) => {
      seen.call = call;
      call.on('cancelled', () => (seen.isCancelled = true));
      call.on('data', (frame: WireAudioFrame) => frames.push(frame));
      call.on('end', () => (seen.isEnded = true));
      onCall(call);
    },
    cancel: ({ sessionId = '' }) => {
      cancels.push(sessionId);
      return cancel === undefined ? { acknowledged: true, stopped: true } : cancel();
    },
  });
  const handle = StreamHandle.open(scene.worker, OPTIONS, { 'x-request-id': 'req_1' });
  return { handle, frames, seen, cancels };
}

describe('a stream handle', () => {
  it('sends options, audio, commits and the end, and reads events until then', async () => {
    const { handle, frames } = await open((call) =>
      call.on('end', () => {
        call.write({ kind: 'FINAL', text: 'hi' });
        call.end();
      }),
    );
    handle.send(Buffer.from('abcd'));
    handle.commit();
    handle.close();
    handle.send(Buffer.from('late'));
    const texts: string[] = [];
    for await (const { text } of handle.events()) texts.push(text);
    expect(texts).toEqual(['hi']);
    expect(await handle.ended).toEqual({ ok: true });
    expect(frames).toMatchObject([
      { options: { sessionId: 'sess_1' } },
      { audio: Buffer.from('abcd') },
      { commit: true },
      { last: true },
    ]);
    expect(frames).toHaveLength(4);
  });

  it('cancels at once, also if the worker does not answer the Cancel', async () => {
    const { handle, seen, cancels } = await open(undefined, () => null);
    await until(() => seen.call !== null, LATE_MS, 'the call');
    const startedAtMs = performance.now();
    await Promise.all([handle.cancel(), handle.cancel()]);
    expect(performance.now() - startedAtMs).toBeLessThan(250);
    expect(await handle.ended).toMatchObject({ ok: false, failure: { kind: 'aborted' } });
    await until(() => seen.isCancelled && cancels.length === 1, LATE_MS, 'the worker to see it');
    expect(cancels).toEqual(['sess_1']);
  });

  it('says why a stream ended that it did not end', async () => {
    const { handle } = await open((call) => failWith(call, 8, 'full'));
    const events: unknown[] = [];
    for await (const event of handle.events()) events.push(event);
    expect(events).toEqual([]);
    expect(await handle.ended).toMatchObject({ ok: false, failure: { kind: 'exhausted' } });
    handle.send(Buffer.from('late'));
    expect(handle.isWritable).toBe(false);
    await handle.cancel();
  });

  it('is not writable while the worker does not read, and drains when it does', async () => {
    const { handle, seen, frames } = await open((call) => call.pause());
    let drains = 0;
    handle.onDrain(() => drains++);
    let sent = 0;
    for (; handle.isWritable && sent < 1_000; sent++) {
      handle.send(Buffer.alloc(64 * 1024));
      await new Promise(setImmediate);
    }
    expect(sent).toBeLessThan(1_000);
    seen.call?.resume();
    await until(() => drains > 0 && handle.isWritable, LATE_MS, 'the stream to drain');
    await until(() => frames.length === sent + 1, LATE_MS, 'all frames');
    await handle.cancel();
  });
});
