import { status as CODE } from '@grpc/grpc-js';
import type { WireTranscript } from '../../../proto/audio-messages';
import {
  failWith,
  type FileRpc,
  MODEL,
  SERVING,
  startAudioServer,
} from '../../support/audio-server';
import { until } from '../../support/until';
import { fileCall, LATE_MS, said, type WorkerScene, workerScene } from './worker-scene';

let scene: WorkerScene;
afterEach(() => scene.close());

function answers(call: FileRpc): void {
  call.write({ result: { text: 'ok' } as WireTranscript });
  call.end();
}

describe('cancel', () => {
  it('says whether the worker acknowledged it', async () => {
    scene = await workerScene({ cancel: ({ requestId }) => ({ acknowledged: requestId === 'a' }) });
    expect(await scene.worker.cancel('a')).toBe(true);
    expect(await scene.worker.cancel('b')).toBe(false);
  });

  it('is not acknowledged if the worker hangs or does not know the call', async () => {
    scene = await workerScene({ cancel: () => null });
    const startMs = performance.now();
    expect(await scene.worker.cancel('a')).toBe(false);
    expect(performance.now() - startMs).toBeGreaterThan(1_900);
    scene.server.script = {};
    expect(await scene.worker.cancel('a')).toBe(false);
  });
});

describe('the state of a worker', () => {
  it('is what its Health says, within the settings', async () => {
    scene = await workerScene({}, { worker: { slots: 1, models: ['whisper-1', 'x'] } });
    const { worker } = scene;
    expect([worker.slots, worker.maxStreams, worker.engine]).toEqual([1, 4, 'scripted']);
    expect([...worker.models.keys()]).toEqual(['whisper-1']);
    scene.server.script = {
      health: () => ({ ...SERVING, slots: 0, models: [{ ...MODEL, maxBatch: 0 } as never] }),
    };
    await until(() => worker.models.get('whisper-1')?.maxBatch === 1, LATE_MS, 'the new Health');
    expect(worker.slots).toBe(1);
  });

  it.each(['LOADING', 'DRAINING', 'ERROR'] as const)(
    'is not ready while it is %s',
    async (status) => {
      scene = await workerScene({});
      const { worker } = scene;
      scene.server.script = { health: () => ({ status, message: 'because' }) };
      await until(() => !worker.isReady, LATE_MS, 'the worker to be not ready');
      expect([worker.status, worker.reason]).toEqual([status.toLowerCase(), 'because']);
      // A model that has loaded may be named only then.
      expect([...worker.models.keys()]).toEqual(['whisper-1']);
      scene.server.script = {};
      await until(() => worker.isReady, LATE_MS, 'the worker to be ready again');
      expect(worker.reason).toBeNull();
    },
  );

  it('is unreachable after three failures of Health, and ready again after one reply', async () => {
    scene = await workerScene({});
    const { worker } = scene;
    scene.server.script = { health: () => undefined as never };
    await until(() => worker.status === 'unreachable', LATE_MS, 'the worker to be unreachable');
    expect(worker.models.size).toBe(1);
    scene.server.script = {};
    await until(() => worker.isReady, LATE_MS, 'the worker to be ready again');
    expect(scene.logged.map(({ msg }) => msg)).toEqual([
      'audio worker ready',
      'audio worker not ready',
      'audio worker ready',
    ]);
  });

  it('says why no connection was ever made', async () => {
    scene = await workerScene({}, { isReady: false, worker: { address: '127.0.0.1:1' } });
    const { worker } = scene;
    await until(() => worker.reason !== '' && worker.reason !== null, LATE_MS, 'a reason');
    expect([worker.status, worker.isReady]).toEqual(['connecting', false]);
    expect(worker.reason).toContain('ECONNREFUSED');
  });

  it('gets nothing after a lost connection before it has answered Health', async () => {
    scene = await workerScene({}, { grpc: { health_interval: '1h' } });
    const { worker, server } = scene;
    server.script = { file: (call) => failWith(call, CODE.UNAVAILABLE), health: () => null };
    await worker.transcribe(fileCall()).ended;
    expect([worker.isReady, worker.status]).toEqual([false, 'serving']);
    expect(worker.reason).toBe('the connection to it broke');
  });
});

describe('the channels of a worker', () => {
  it('survive failed calls: another call that runs is not touched', async () => {
    let finish: (() => void) | null = null;
    scene = await workerScene({
      file: (call) => {
        call.once('data', ({ options }: { options?: { prompt: string } }) => {
          if (options?.prompt === 'fail') return failWith(call, CODE.UNAVAILABLE);
          finish = () => {
            call.write({ result: { text: 'ok' } as WireTranscript });
            call.end();
          };
        });
      },
    });
    const { worker } = scene;
    const long = worker.transcribe(fileCall());
    const finishLong = await until(() => finish, LATE_MS, 'the long call');
    const failing = fileCall();
    const options = { ...failing.options, prompt: 'fail' };
    // More than the three in a row that replace the channel.
    for (let i = 0; i < 5; i++) {
      expect(said(await worker.transcribe({ ...failing, options }).ended)).toBe('failed: lost');
    }
    finishLong();
    expect(said(await long.ended)).toBe('ok');
  });

  it('find a worker that was killed and started again', async () => {
    scene = await workerScene({ file: () => undefined });
    const { worker, server } = scene;
    const call = worker.transcribe(fileCall());
    server.kill();
    expect(said(await call.ended)).toBe('failed: lost');
    const port = Number(server.address.split(':')[1]);
    const again = await startAudioServer({ file: answers }, { port });
    await until(() => worker.isReady, LATE_MS, 'the worker to be ready again');
    expect(said(await worker.transcribe(fileCall()).ended)).toBe('ok');
    again.kill();
  });

  it('go on without pings at a server that refuses them, and say which settings it needs', async () => {
    let refuses = true;
    scene = await workerScene({
      file: (call) => {
        if (!refuses) return answers(call);
        failWith(call, CODE.RESOURCE_EXHAUSTED, 'Bandwidth exhausted or memory limit exceeded');
      },
    });
    const { worker, logged } = scene;
    expect(said(await worker.transcribe(fileCall()).ended)).toBe('failed: lost');
    refuses = false;
    expect(said(await worker.transcribe(fileCall()).ended)).toBe('ok');
    expect(logged.filter(({ msg }) => msg.includes('refuses pings'))).toHaveLength(1);
  });
});
