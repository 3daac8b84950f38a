import { BAND } from '../../../core/dispatch/queue/band';
import { AudioScene, FakeLink, MODEL } from './pool-scene';

const batching = () => new Map([['m', { ...MODEL, maxBatch: 8 }]]);

function sceneOf(changes: Partial<FakeLink> = {}, settings: object = {}) {
  const link = new FakeLink('w:1', changes);
  return { link, scene: new AudioScene([link], settings) };
}

describe('a cancel', () => {
  it('of a waiting request takes it out at once, and charges nothing', async () => {
    const { scene } = sceneOf();
    scene.submit();
    const waiting = scene.submit({ requestId: 'w' });
    expect(scene.pool.cancel('t', 'w')).toBe(true);
    expect(waiting.ends).toMatchObject([{ code: 'cancelled', wasDispatched: false }]);
    expect(scene.pool.controller.stats().queued).toEqual([0, 0, 0]);
  });

  it('of a collected request leaves the others', async () => {
    const { link, scene } = sceneOf({ models: batching() });
    scene.submit();
    const collected = scene.submit({ requestId: 'c' });
    expect(scene.pool.cancel('t', 'c')).toBe(true);
    await scene.pass(50);
    expect([collected.told, link.calls.map(({ kind }) => kind)]).toEqual([['cancelled'], ['file']]);
  });

  it('in flight answers at once, tells the worker, then ends the call', async () => {
    const { link, scene } = sceneOf();
    const one = scene.submit();
    await scene.settle();
    expect(scene.pool.cancel('t', 'req_0')).toBe(true);
    expect(one.told).toEqual(['dispatched', 'cancelled']);
    expect(link.cancels).toEqual(['req_0']);
    await scene.settle();
    expect(link.calls).toMatchObject([{ isAborted: true }]);
    // Acknowledged, so the slot is free.
    scene.submit();
    await scene.settle();
    expect(link.running).toHaveLength(1);
  });

  it('that is not acknowledged ends the call, and blocks the slot for 2 s', async () => {
    const { link, scene } = sceneOf({ acknowledges: 'never' });
    scene.submit();
    await scene.settle();
    scene.pool.cancel('t', 'req_0');
    await scene.settle();
    expect(link.calls).toMatchObject([{ isAborted: false }]);
    scene.nowMs += 100;
    link.cancelTimedOut();
    await scene.settle();
    expect(link.calls).toMatchObject([{ isAborted: true }]);
    expect(scene.cancelMs).toEqual([100]);
    scene.submit();
    await scene.pass(1_900);
    expect(link.running).toHaveLength(0);
    await scene.pass(200);
    expect(link.running).toHaveLength(1);
  });

  it('is idempotent, and has no effect on other tenants, unknown ids and what has ended', async () => {
    const { link, scene } = sceneOf();
    const one = scene.submit();
    await scene.settle();
    expect(scene.pool.cancel('other', 'req_0')).toBe(false);
    expect(scene.pool.cancel('t', 'unknown')).toBe(false);
    expect(scene.pool.cancel('t', 'req_0')).toBe(true);
    expect(scene.pool.cancel('t', 'req_0')).toBe(false);
    await scene.settle();
    expect([one.ends.length, link.cancels.length]).toEqual([1, 1]);
    const done = scene.submit({ requestId: 'done' });
    await scene.settle();
    link.running[0]?.finish();
    await scene.settle();
    expect(scene.pool.cancel('t', 'done')).toBe(false);
    expect(done.told).toEqual(['dispatched', 'transcript']);
  });

  it('applies to every request with the id, but not to lines of batches', async () => {
    const { scene } = sceneOf();
    const same = [0, 1, 2].map(() => scene.submit({ requestId: 'same' }));
    const line = scene.submit({ requestId: 'same', band: BAND.sheddable });
    await scene.settle();
    expect(scene.pool.cancel('t', 'same')).toBe(true);
    expect(same.map(({ ends }) => ends.length)).toEqual([1, 1, 1]);
    expect(line.ends).toEqual([]);
  });

  it('of one request in a batch drops its result, and of the last one ends the call', async () => {
    const { link, scene } = sceneOf({ models: batching() });
    const [first, second] = [scene.submit(), scene.submit()];
    await scene.pass(50);
    scene.pool.cancel('t', 'req_0');
    await scene.settle();
    expect([first.told.at(-1), link.cancels]).toEqual(['cancelled', []]);
    scene.pool.cancel('t', 'req_1');
    expect([second.told.at(-1), link.cancels]).toEqual(['cancelled', ['batch_1']]);
    await scene.settle();
    expect(link.calls).toMatchObject([{ isAborted: true }]);
    expect(scene.pool.controller.stats().stock).toBe(0);
  });

  it('of a request that waits for a repeated call ends it', async () => {
    const { link, scene } = sceneOf();
    const one = scene.submit();
    await scene.settle();
    link.running[0]?.fail('lost');
    await scene.settle();
    expect(scene.pool.cancel('t', 'req_0')).toBe(true);
    await scene.pass(1_000);
    expect([one.told, link.calls.length]).toEqual([['dispatched', 'cancelled'], 1]);
    expect(scene.pool.load).toEqual({ waiting: 0, running: 0 });
  });

  it('also comes from a client that closes its connection', async () => {
    const { link, scene } = sceneOf();
    const line = scene.submit({ band: BAND.sheddable });
    await scene.settle();
    scene.pool.abandon(line.job, 'client_closed');
    scene.pool.abandon(line.job, 'client_closed');
    expect(line.told).toEqual(['dispatched', 'client_closed']);
    expect(link.cancels).toEqual(['req_0']);
  });
});

it('1,000 cancels that race results settle each request exactly once', async () => {
  const { link, scene } = sceneOf({ slots: 7, acknowledges: true });
  let seed = 42;
  const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  for (let i = 0; i < 1_000; i++) {
    scene.submit({ requestId: `r${i}`, band: random() < 0.3 ? BAND.critical : BAND.standard });
    const id = `r${Math.max(0, i - Math.floor(random() * 20))}`;
    const call = link.running.find((one) => one.id === id) ?? link.running[0];
    // In the same tick, in either order.
    const steps = [() => void scene.pool.cancel('t', id), () => call?.finish()];
    if (random() < 0.5) steps.reverse();
    for (const step of steps) step();
    if (random() < 0.7) await scene.settle();
  }
  for (let i = 0; i < 1_100 && scene.running.length > 0; i++) {
    link.running[0]?.finish();
    await scene.settle();
  }
  expect(scene.submitted.map(({ ends }) => ends.length)).toEqual(Array(1_000).fill(1));
  const kinds = new Set(scene.submitted.map(({ told }) => told.at(-1)));
  expect(kinds.has('cancelled') && kinds.has('transcript')).toBe(true);
  expect(scene.endedJobs).toHaveLength(1_000);
  expect(scene.pool.load).toEqual({ waiting: 0, running: 0 });
  expect(scene.pool.controller.stats().stock).toBe(0);
  expect(scene.pool.slots.workers[0]?.free).toBe(7);
});
