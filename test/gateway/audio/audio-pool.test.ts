import { BAND } from '../../../core/dispatch/queue/band';
import { AudioScene, FakeLink, MODEL } from './pool-scene';

const batching = () => new Map([['m', { ...MODEL, maxBatch: 8 }]]);

function sceneOf(changes: Partial<FakeLink> = {}, settings: object = {}) {
  const link = new FakeLink('w:1', changes);
  return { link, scene: new AudioScene([link], settings) };
}

afterEach(() => jest.restoreAllMocks());

describe('dispatch', () => {
  it('never has more calls at a worker than it has slots', async () => {
    const { link, scene } = sceneOf({ slots: 2 });
    for (let i = 0; i < 5; i++) scene.submit();
    await scene.settle();
    expect(link.running).toHaveLength(2);
    link.running[0]?.finish();
    await scene.settle();
    expect(link.running).toHaveLength(2);
    expect(scene.submitted.map(({ told }) => told.length)).toEqual([2, 1, 1, 0, 0]);
  });

  it('serves REALTIME before BATCH, and first in first out within each', async () => {
    const { link, scene } = sceneOf();
    scene.submit({ requestId: 'first' });
    for (const id of ['b1', 'b2']) scene.submit({ requestId: id });
    for (const id of ['r1', 'r2']) scene.submit({ requestId: id, band: BAND.critical });
    for (let i = 0; i < 5; i++) {
      await scene.settle();
      link.running[0]?.finish();
    }
    expect(link.calls.map(({ id }) => id)).toEqual(['first', 'r1', 'r2', 'b1', 'b2']);
  });

  it('passes over requests whose model has no free slot', async () => {
    const other = new FakeLink('w:2', { models: new Map([['n', { ...MODEL, name: 'n' }]]) });
    const link = new FakeLink('w:1');
    const scene = new AudioScene([link, other]);
    scene.submit();
    scene.submit();
    scene.submit({ model: 'n' });
    await scene.settle();
    expect([link.running.length, other.running.length]).toEqual([1, 1]);
  });

  it('chooses the worker with most free slots, then the one that was used least recently', async () => {
    const links = [1, 2, 3].map((i) => new FakeLink(`w:${i}`, { slots: i === 3 ? 2 : 1 }));
    const scene = new AudioScene(links);
    for (let i = 0; i < 4; i++) scene.submit();
    await scene.settle();
    const order = scene.running.map(({ id, worker }) => [id, worker.address]).sort();
    expect(order).toEqual([
      ['req_0', 'w:3'],
      ['req_1', 'w:1'],
      ['req_2', 'w:2'],
      ['req_3', 'w:3'],
    ]);
  });

  it('asks only workers that can do what a request needs', async () => {
    const speaks = new FakeLink('w:1', {
      models: new Map([['m', { ...MODEL, tasks: ['SPEAK'] }]]),
    });
    const link = new FakeLink('w:2');
    const scene = new AudioScene([speaks, link]);
    scene.submit();
    await scene.settle();
    expect([speaks.calls.length, link.calls.length]).toEqual([0, 1]);
  });

  it('leaves the last slot of a model to users, unless it is the only one', async () => {
    const { link, scene } = sceneOf({ slots: 3 });
    for (let i = 0; i < 5; i++) scene.submit({ band: BAND.sheddable });
    await scene.settle();
    expect(link.running).toHaveLength(2);
    scene.submit();
    await scene.settle();
    expect(link.running).toHaveLength(3);
    const single = sceneOf();
    single.scene.submit({ band: BAND.sheddable });
    await single.scene.settle();
    expect(single.link.running).toHaveLength(1);
  });

  it('gives a call twice the duration of its recording, 30 s at least, and speech its own limit', async () => {
    const { link, scene } = sceneOf({ slots: 3 });
    scene.submit({ durationSec: 10 });
    scene.submit({ durationSec: 100 });
    scene.speak();
    await scene.settle();
    expect(link.calls.map(({ timeoutMs }) => timeoutMs)).toEqual([30_000, 200_000, 60_000]);
  });

  it('moves a BATCH request up after 30 s, and counts it', async () => {
    const { link, scene } = sceneOf();
    scene.submit({ durationSec: 100 });
    const old = scene.submit({ requestId: 'old' });
    await scene.pass(29_900);
    scene.submit({ band: BAND.critical, requestId: 'r' });
    scene.submit({ requestId: 'young' });
    await scene.pass(300);
    expect(scene.pool.controller.stats().promoted).toBe(1);
    link.running[0]?.finish();
    await scene.settle();
    link.running[0]?.finish();
    await scene.settle();
    expect(link.calls.map(({ id }) => id)).toEqual(['req_0', 'old', 'r']);
    expect(old.told).toEqual(['dispatched', 'transcript']);
  });

  it('does not move lines of batches up', async () => {
    const { scene } = sceneOf();
    scene.submit({ durationSec: 1_000 });
    scene.submit({ band: BAND.sheddable });
    await scene.pass(60_000);
    expect(scene.pool.controller.stats().promoted).toBe(0);
  });
});

describe('accumulator and batches', () => {
  it('sends requests that come within 50 ms in one call', async () => {
    const { link, scene } = sceneOf({ models: batching() });
    for (let i = 0; i < 3; i++) scene.submit();
    await scene.pass(49);
    expect(link.calls).toHaveLength(0);
    await scene.pass(1);
    expect(link.calls).toMatchObject([{ kind: 'batch', id: 'batch_1', timeoutMs: 60_000 }]);
    link.calls[0]?.finish();
    await scene.settle();
    expect(scene.submitted.map(({ told }) => told)).toEqual(
      Array(3).fill(['dispatched', 'transcript']),
    );
    expect(scene.endedCalls).toMatchObject([{ items: 3, priority: 'BATCH' }]);
  });

  it('does not wait for more than 8, and never sends more together', async () => {
    const { link, scene } = sceneOf({ models: batching(), slots: 2 });
    for (let i = 0; i < 12; i++) scene.submit();
    await scene.settle();
    expect(link.calls.map(({ call }) => 'items' in call && call.items.length)).toEqual([8]);
    await scene.pass(50);
    expect(link.calls.map(({ call }) => 'items' in call && call.items.length)).toEqual([8, 4]);
  });

  it('forms batches of what has waited, of one model, task and band, in the order of the queue', async () => {
    const { link, scene } = sceneOf({ models: batching() });
    scene.submit({ durationSec: 500 });
    for (let i = 0; i < 10; i++) {
      scene.submit({ task: i < 5 ? 'transcribe' : 'translate' });
      scene.submit({ band: BAND.sheddable });
    }
    await scene.pass(100);
    for (let i = 0; i < 4; i++) {
      link.running[0]?.finish();
      await scene.settle();
    }
    const sizes = link.calls.map(({ call }) => ('items' in call ? call.items.length : 1));
    expect(sizes).toEqual([1, 5, 5, 8, 2]);
  });

  it('holds nothing back if no worker of the model takes several, nor long recordings', async () => {
    const plain = sceneOf();
    plain.scene.submit();
    await plain.scene.settle();
    expect(plain.link.calls).toHaveLength(1);
    const { link, scene } = sceneOf({ models: batching(), slots: 3 });
    scene.submit({ durationSec: 121 });
    scene.submit({ durationSec: 121 });
    scene.submit({ band: BAND.critical });
    await scene.settle();
    expect(link.calls.map(({ kind }) => kind)).toEqual(['file', 'file', 'file']);
  });

  it('settles each request of a batch by its own result', async () => {
    const { link, scene } = sceneOf({ models: batching() });
    const [first, second] = [scene.submit(), scene.submit()];
    await scene.pass(50);
    const { call } = link.calls[0] ?? {};
    if (call === undefined || !('items' in call)) throw new Error('no batch');
    const failure = { kind: 'invalid', message: 'no audio' } as const;
    call.onItem(1, { ok: false, failure });
    expect([first.told, second.told]).toEqual([['dispatched'], ['dispatched', 'invalid']]);
    link.calls[0]?.fail('lost');
    await scene.pass(200);
    // Only what had no result is repeated.
    expect(link.calls.map(({ kind }) => kind)).toEqual(['batch', 'file']);
    link.calls[1]?.finish();
    await scene.settle();
    expect(first.told).toEqual(['dispatched', 'transcript']);
  });
});

describe('failed calls', () => {
  it('are repeated once on another worker, without another charge', async () => {
    const links = [new FakeLink('w:1'), new FakeLink('w:2')];
    const scene = new AudioScene(links);
    const one = scene.submit();
    await scene.settle();
    scene.running[0]?.fail('lost');
    await scene.settle();
    expect(scene.running).toMatchObject([{ worker: { address: 'w:2' } }]);
    scene.running[0]?.fail('lost');
    await scene.settle();
    expect(one.ends).toMatchObject([{ code: 'backend_lost', wasDispatched: true }]);
    expect(scene.running).toEqual([]);
    expect(scene.pool.controller.stats().stock).toBe(0);
  });

  it('are repeated on the same worker after 100 ms if there is no other', async () => {
    const { link, scene } = sceneOf();
    scene.submit();
    await scene.settle();
    link.running[0]?.fail('lost');
    scene.submit({ requestId: 'later' });
    await scene.pass(99);
    expect(link.running).toHaveLength(0);
    await scene.pass(101);
    expect(link.running).toMatchObject([{ id: 'req_0' }]);
  });

  it('are not repeated after a part of the answer was passed on', async () => {
    const { link, scene } = sceneOf();
    const one = scene.submit();
    await scene.settle();
    const { call } = link.calls[0] ?? {};
    if (call !== undefined && 'onDelta' in call) call.onDelta?.('a');
    link.calls[0]?.fail('lost');
    await scene.pass(500);
    expect(one.told).toEqual(['dispatched', 'delta a', 'backend_lost']);
  });

  it.each([
    ['timeout', 'backend_timeout'],
    ['invalid', 'invalid'],
    ['not_found', 'not_found'],
    ['failed', 'backend_failed'],
    ['source', 'internal'],
  ] as const)('of kind %s end as %s', async (kind, code) => {
    const { link, scene } = sceneOf();
    const one = scene.submit();
    await scene.settle();
    link.running[0]?.fail(kind);
    await scene.pass(500);
    expect([one.told, link.calls.length]).toEqual([['dispatched', code], 1]);
  });

  it('for lack of a slot wait until the next Health, and end at the third', async () => {
    const { link, scene } = sceneOf({ slots: 2 });
    const one = scene.submit();
    await scene.settle();
    for (let i = 1; i < 3; i++) {
      link.running[0]?.fail('exhausted');
      await scene.pass(1_000);
      expect(link.running).toHaveLength(0);
      link.healthReplies++;
      await scene.pass(200);
      expect(link.running).toHaveLength(1);
    }
    link.running[0]?.fail('exhausted');
    await scene.settle();
    expect(one.told).toEqual(['dispatched', 'backend_exhausted']);
  });

  it('are given up if no worker is there for a repetition', async () => {
    const { link, scene } = sceneOf();
    const one = scene.submit();
    await scene.settle();
    link.status = 'unreachable';
    link.running[0]?.fail('lost');
    await scene.pass(9_900);
    expect(one.ends).toHaveLength(0);
    await scene.pass(300);
    expect(one.told).toEqual(['dispatched', 'backend_lost']);
    expect(scene.pool.load).toEqual({ waiting: 0, running: 0 });
  });
});

describe('waiting', () => {
  it('ends after 10 s if no worker of the model is ready, though others are', async () => {
    const other = new FakeLink('w:2', { models: new Map([['n', { ...MODEL, name: 'n' }]]) });
    const link = new FakeLink('w:1');
    const scene = new AudioScene([link, other]);
    link.status = 'draining';
    scene.pool.refresh();
    const one = scene.submit();
    await scene.pass(9_900);
    expect(one.ends).toHaveLength(0);
    await scene.pass(300);
    expect(one.ends).toMatchObject([{ code: 'no_backends', wasDispatched: false }]);
  });

  it('ends after five minutes, for a line of a batch after two', async () => {
    const { scene } = sceneOf({ slots: 1 });
    scene.submit({ durationSec: 10_000 });
    const user = scene.submit();
    const line = scene.submit({ band: BAND.sheddable });
    await scene.pass(121_000);
    expect([user.told, line.told]).toEqual([[], ['queue_ttl_expired']]);
    await scene.pass(180_000);
    expect(user.told).toEqual(['queue_ttl_expired']);
  });

  it('counts requests by their priority on arrival', async () => {
    const { scene } = sceneOf();
    scene.submit();
    scene.submit();
    scene.speak();
    await scene.settle();
    expect(scene.pool.waiting).toEqual({ REALTIME: 1, BATCH: 1 });
  });
});

it('reports an owner that throws, and goes on', async () => {
  const { link, scene } = sceneOf();
  const one = scene.submit();
  one.told.push = () => {
    throw new Error('broken owner');
  };
  await scene.settle();
  link.running[0]?.finish();
  scene.submit();
  await scene.settle();
  expect(scene.errors).not.toHaveLength(0);
  expect(link.running).toHaveLength(1);
});
