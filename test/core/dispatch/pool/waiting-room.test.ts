import { BAND, type Band } from '../../../../core/dispatch/queue/band';
import { PoolScene } from './pool-scene';
import { settingsWith } from './settings';

const FULL = { readyBackends: 1, limit: 1, sheddableCap: Infinity };

/** A pool of one place, which is taken. */
function fullPool(changes: Parameters<typeof settingsWith>[0] = {}): PoolScene {
  const scene = new PoolScene(settingsWith(changes));
  scene.setPool(FULL);
  scene.arrive();
  return scene;
}

function outcomesOf(scene: PoolScene): string[] {
  return scene.outcomes.map(({ request, what }) => `${request.tenant} ${what}`);
}

describe('times to live', () => {
  it('are 30 s for critical and standard requests, and 60 s for sheddable ones', () => {
    const scene = fullPool();
    scene.arrive({ tenant: 'critical', band: BAND.critical });
    scene.arrive({ tenant: 'standard' });
    scene.arrive({ tenant: 'sheddable', band: BAND.sheddable });
    scene.advance(29_999);
    expect(scene.queued).toHaveLength(3);
    scene.advance(101);
    expect(scene.queued.map(({ tenant }) => tenant)).toEqual(['sheddable']);
    scene.advance(30_000);
    expect(scene.count('queue_ttl_expired')).toBe(3);
  });

  it('end at the deadline of the client, if that is earlier', () => {
    const scene = fullPool();
    scene.arrive({ deadlineMs: scene.nowMs + 5_000 });
    scene.advance(5_100);
    expect(scene.count('deadline_exceeded')).toBe(1);
  });

  it('refuse a request whose deadline has passed, even if the pool is idle', () => {
    const scene = new PoolScene(settingsWith({}));
    scene.setPool(FULL);
    scene.arrive({ deadlineMs: scene.nowMs });
    expect(outcomesOf(scene)).toEqual(['t deadline_exceeded']);
  });
});

describe('a pool without ready backends', () => {
  it('lets requests wait for 30 s from its loss, or from their arrival', () => {
    const scene = fullPool({ fairRequestQueue: { queueTtlMs: 100_000 } });
    scene.arrive({ tenant: 'before' });
    scene.advance(10_000);
    scene.setPool({ readyBackends: 0 });
    scene.advance(10_000);
    scene.arrive({ tenant: 'during' });
    scene.advance(19_900);
    expect(scene.count('no_backends')).toBe(0);
    scene.advance(100);
    expect(outcomesOf(scene)).toEqual(['t bypass', 'before no_backends']);
    scene.advance(10_000);
    expect(outcomesOf(scene).at(-1)).toBe('during no_backends');
  });

  it('starts anew when a backend was ready in between', () => {
    const scene = fullPool({ fairRequestQueue: { queueTtlMs: 100_000 } });
    scene.arrive({ tenant: 'waiting' });
    for (let i = 0; i < 3; i++) {
      scene.setPool({ readyBackends: 0 });
      scene.advance(20_000);
      scene.setPool({ readyBackends: 1 });
    }
    expect(scene.queued).toHaveLength(1);
  });
});

describe('promotion by age', () => {
  it('moves standard requests into the critical flow, in order, and keeps their time to live', () => {
    const scene = fullPool({ bands: { promoteAfterMs: 10_000 } });
    for (const cost of [1, 2]) scene.arrive({ cost });
    scene.arrive({ tenant: 'sheddable', band: BAND.sheddable });
    scene.advance(10_100);
    expect(scene.controller.stats()).toMatchObject({ queued: [2, 0, 1], promoted: 2 });
    scene.end(scene.inFlight[0]!);
    expect(scene.inFlight.map(({ band, cost }) => [band, cost])).toEqual([[BAND.critical, 1]]);
    scene.advance(20_000);
    expect(scene.count('queue_ttl_expired')).toBe(1);
  });

  it('puts them before critical requests that came later', () => {
    const scene = fullPool({ bands: { promoteAfterMs: 1_000 } });
    const arrive = (band: Band, cost: number) => {
      scene.arrive({ band, cost });
      scene.advance(100);
    };
    arrive(BAND.critical, 1);
    for (const cost of [2, 4]) arrive(BAND.standard, cost);
    arrive(BAND.critical, 3);
    scene.advance(400);
    arrive(BAND.critical, 5);
    scene.advance(1_000);
    for (let i = 0; i < 5; i++) scene.end(scene.inFlight[0]!);
    const costs = scene.outcomes.map(({ request: { cost } }) => cost);
    expect(costs.slice(1)).toEqual([1, 2, 4, 3, 5]);
  });

  it('waits until the critical flow has a place', () => {
    const scene = fullPool({
      fairRequestQueue: { flowCapacity: 1 },
      bands: { promoteAfterMs: 1_000 },
    });
    scene.arrive({ tenant: 't', band: BAND.critical });
    scene.arrive({ tenant: 't' });
    scene.advance(2_000);
    expect(scene.controller.stats().queued).toEqual([1, 1, 0]);
    scene.end(scene.inFlight[0]!);
    scene.advance(200);
    expect(scene.controller.stats().queued).toEqual([1, 0, 0]);
  });

  it('moves all that are old enough in the first tick with places for them', () => {
    const scene = fullPool({
      fairRequestQueue: { flowCapacity: 2 },
      bands: { promoteAfterMs: 1_000 },
    });
    for (let i = 0; i < 2; i++) scene.arrive({ band: BAND.critical });
    // The tick that retries the first is the tick that is due for the second.
    scene.arrive();
    scene.advance(50);
    scene.arrive();
    scene.advance(1_500);
    expect(scene.controller.stats().queued).toEqual([2, 2, 0]);
    for (const one of scene.queued.slice(0, 2)) scene.cancel(one);
    scene.advance(100);
    expect(scene.controller.stats().queued).toEqual([2, 0, 0]);
  });
});

describe('the bytes of queued bodies', () => {
  const settings = { fairRequestQueue: { queueBytes: 100, sheddableBytes: 50 } };

  it('are bounded for sheddable requests, and make room for higher bands', () => {
    const scene = fullPool(settings);
    scene.arrive({ tenant: 'victim', band: BAND.sheddable, bytes: 40 });
    scene.arrive({ tenant: 'large', band: BAND.sheddable, bytes: 20 });
    scene.arrive({ tenant: 'standard', bytes: 80 });
    scene.arrive({ tenant: 'larger', bytes: 30 });
    expect(outcomesOf(scene)).toEqual([
      't bypass',
      'large queue_bytes_exceeded',
      'victim evicted',
      'larger queue_bytes_exceeded',
    ]);
    expect(scene.controller.stats().queuedBytes).toBe(80);
  });
});

it('a request that is marked as cancelled leaves with the next clean-up', () => {
  const scene = fullPool();
  scene.arrive({ tenant: 'marked' }).markCancelled();
  expect(scene.queued).toHaveLength(1);
  scene.advance(1_000);
  expect(outcomesOf(scene)).toEqual(['t bypass', 'marked client_closed']);
});

it('closing drops what is queued, refuses newcomers, and lets dispatched requests end', () => {
  const scene = fullPool();
  for (let i = 0; i < 600; i++) scene.arrive({ tenant: `${i}` });
  scene.controller.close();
  expect(scene.count('shutting_down')).toBe(256);
  scene.settle();
  expect(scene.count('shutting_down')).toBe(600);
  scene.arrive();
  expect(scene.count('shutting_down')).toBe(601);
  scene.end(scene.inFlight[0]!);
  expect([scene.controller.stats().stock, scene.errors]).toEqual([0, []]);
});
