import { failWith } from '../../../support/audio-server';
import { until } from '../../../support/until';
import { closeAll } from '../../gateway-fixtures';
import {
  COMPLETED,
  connect,
  FAILED,
  LATE_MS,
  liveGateway,
  type LiveStream,
  liveWorker,
  PCM_100_MS,
} from './realtime-scene';

jest.setTimeout(120_000);
afterEach(closeAll);

const UNAVAILABLE = 14;
const INTERNAL = 13;
const RESOURCE_EXHAUSTED = 8;

async function streamOf(worker: { readonly streams: readonly LiveStream[] }, index = 0) {
  return until(() => worker.streams[index], LATE_MS, `stream ${index}`);
}

describe('a realtime session whose worker is lost', () => {
  it('goes on at another worker, with the audio since the last final text', async () => {
    const workers = [await liveWorker(), await liveWorker()];
    const client = await connect(await liveGateway(workers));
    for (let i = 0; i < 5; i++) client.socket.send(PCM_100_MS.fill(i));
    const isHeard = () => workers.find(({ streams }) => (streams[0]?.bytes() ?? 0) === 24_000);
    const first = await until(isHeard, LATE_MS, 'the audio');
    const second = workers.find((one) => one !== first)!;
    const stream = await streamOf(first);
    stream.say('FINAL', { text: 'one two', endMs: 150 });
    stream.say('PARTIAL', { text: 'three four', stableChars: 5 });
    await until(() => client.text() === 'one two three', LATE_MS, 'the text');
    first.server.kill();
    client.send({ type: 'input_audio_buffer.commit' });
    const next = await streamOf(second);
    await until(() => next.frames.some(({ commit }) => commit), LATE_MS, 'the commit');
    expect(next.frames[0]?.options).toMatchObject({ startMs: 150 });
    const audio = Buffer.concat(next.frames.map((frame) => frame.audio ?? Buffer.alloc(0)));
    expect(audio.length).toBe(24_000 - 7_200);
    expect([audio[0], audio[2_400], audio.at(-1)]).toEqual([1, 2, 4]);
    next.say('PARTIAL', { text: 'tree four', stableChars: 9 });
    next.say('FINAL', { text: 'tree four five', endMs: 500 });
    next.say('ITEM_DONE');
    const { transcript } = await client.next(COMPLETED);
    expect(transcript).toBe('one two three four five');
    expect(client.text()).toBe(transcript);
    expect(client.of('error')).toEqual([]);
  });

  it('waits for the same worker if there is no other one', async () => {
    const worker = await liveWorker();
    const client = await connect(await liveGateway([worker]));
    client.socket.send(PCM_100_MS);
    client.send({ type: 'input_audio_buffer.commit' });
    await until(() => worker.streams[0]?.frames.some(({ commit }) => commit), LATE_MS, 'a commit');
    worker.server.kill();
    const again = await liveWorker({}, {}, Number(worker.server.address.split(':')[1]));
    const stream = await streamOf(again);
    await until(() => stream.frames.some(({ commit }) => commit), LATE_MS, 'the commit again');
    stream.say('ITEM_DONE');
    expect(await client.next(COMPLETED)).toMatchObject({ transcript: '' });
  });

  it('fails what is due after the third worker that was lost', async () => {
    const fail = { stream: (call: LiveStream['call']) => failWith(call, UNAVAILABLE, 'gone') };
    const worker = await liveWorker(fail);
    const client = await connect(await liveGateway([worker]));
    client.socket.send(PCM_100_MS);
    client.send({ type: 'input_audio_buffer.commit' });
    expect(await client.closed).toBe(1011);
    expect(client.of(FAILED)).toMatchObject([{ error: { code: 'backend_lost' } }]);
    expect(client.of('error')).toMatchObject([{ error: { code: 'backend_lost' } }]);
  });

  it('fails at once if the worker failed by itself', async () => {
    const fail = { stream: (call: LiveStream['call']) => failWith(call, INTERNAL, 'secret') };
    const client = await connect(await liveGateway([await liveWorker(fail)]));
    client.socket.send(PCM_100_MS);
    expect(await client.closed).toBe(1011);
    expect(client.of('error')).toMatchObject([{ error: { code: 'backend_failed' } }]);
    expect(JSON.stringify(client.events)).not.toContain('secret');
  });

  it('goes to another worker if one refuses the stream for lack of room', async () => {
    const full = {
      stream: (call: LiveStream['call']) => failWith(call, RESOURCE_EXHAUSTED, 'full'),
    };
    const workers = [await liveWorker(full), await liveWorker()];
    const client = await connect(await liveGateway(workers));
    client.socket.send(PCM_100_MS);
    const stream = await streamOf(workers[1]!);
    await until(() => stream.bytes() === PCM_100_MS.length, LATE_MS, 'the audio');
  });
});

describe('back-pressure of a realtime session', () => {
  it('stops reading from the client while the worker does not read, and loses nothing', async () => {
    let isPaused = true;
    let received = 0;
    const worker = await liveWorker({
      stream: (call) => {
        const read = (): void =>
          void call.on('data', ({ audio }) => (received += audio?.length ?? 0));
        void until(() => !isPaused, LATE_MS, 'the test').then(read);
      },
    });
    const client = await connect(await liveGateway([worker]));
    const piece = Buffer.alloc(512 * 1024);
    const pieces = 96;
    let taken = 0;
    for (let i = 0; i < pieces; i++) client.socket.send(piece, () => taken++);
    const before = await settled(() => taken);
    expect(before).toBeLessThan(pieces / 2);
    isPaused = false;
    await until(() => received === pieces * piece.length, LATE_MS, 'all the audio');
  });

  it('stops reading from the worker while the client does not read', async () => {
    const text = 'x'.repeat(64 * 1024);
    let said = 0;
    const worker = await liveWorker({
      stream: (call) => {
        const speak = (): void => {
          while (said < 1_000 && call.write({ kind: 'FINAL', text })) said++;
          if (said < 1_000) call.once('drain', speak);
        };
        call.on('data', () => undefined);
        speak();
      },
    });
    const client = await connect(await liveGateway([worker]));
    client.socket.pause();
    client.socket.send(PCM_100_MS);
    await until(() => said > 0, LATE_MS, 'the first text');
    expect(await settled(() => said)).toBeLessThan(700);
    client.socket.resume();
    await until(() => said === 1_000, LATE_MS, 'the rest');
  });
});

/** A number when it has stopped changing. */
async function settled(value: () => number): Promise<number> {
  let [last, same] = [-1, 0];
  const isSame = (): boolean => {
    same = value() === last ? same + 1 : 0;
    last = value();
    return same >= 25;
  };
  await until(isSame, LATE_MS, 'a number that stays');
  return last;
}
