import { BAND, type Band } from '../../../../core/dispatch/queue/band';
import type { QueuedRequest } from '../../../../core/dispatch/queue/queued-request';
import { PoolScene, stockBandOf } from './pool-scene';
import { settingsWith } from './settings';

const READY = { readyBackends: 1, limit: 2, sheddableCap: Infinity };

function poolOf(changes: Parameters<typeof settingsWith>[0] = {}, limit = 2): PoolScene {
  const scene = new PoolScene(settingsWith(changes));
  scene.setPool({ ...READY, limit });
  return scene;
}

/** Keeps every band backlogged for 30 s, while requests end at a constant rate. */
function overload(scene: PoolScene, bands: readonly Band[], endsPerSec: number): void {
  for (let ms = 0; ms < 30_000; ms += 1_000 / endsPerSec) {
    for (const band of bands) {
      while (scene.queued.filter((one) => one.band === band).length < 5) scene.arrive({ band });
    }
    scene.advance(1_000 / endsPerSec);
    scene.end(scene.inFlight[0]!);
  }
}

/** The part of the cost that a band got in each interval of 10 s. */
function sharesOf(scene: PoolScene, band: Band): number[] {
  const shares: number[] = [];
  for (let i = 0; i < 3; i++) {
    const from = 1_000_000 + i * 10_000;
    const inside = scene.outcomes.filter(({ atMs }) => atMs >= from && atMs < from + 10_000);
    const own = inside.filter((one) => stockBandOf(one) === band);
    shares.push(own.length / inside.length);
  }
  return shares;
}

describe('bands', () => {
  it.each([
    ['strict', [0, 0]],
    ['strict_floor', [0.05, 0.05]],
    ['weighted', [0.2, 0.1]],
  ] as const)(
    'with %s get their shares in every 10 s of overload',
    (between, [standard, sheddable]) => {
      const scene = poolOf({ bands: { between, ceilings: [1, 1, 1] } });
      overload(scene, [BAND.critical, BAND.standard, BAND.sheddable], 20);
      for (const share of sharesOf(scene, BAND.standard)) expect(share).toBeCloseTo(standard, 1);
      for (const share of sharesOf(scene, BAND.sheddable)) expect(share).toBeCloseTo(sheddable, 1);
      const least = between === 'strict_floor' ? 0.045 : 0;
      expect(Math.min(...sharesOf(scene, BAND.sheddable))).toBeGreaterThanOrEqual(least);
    },
  );

  it('reach the floor of sheddable even if higher bands keep the pool above its ceiling', () => {
    const scene = poolOf({}, 10);
    overload(scene, [BAND.standard, BAND.sheddable], 20);
    for (const share of sharesOf(scene, BAND.sheddable)) expect(share).toBeGreaterThan(0.045);
  });

  it('give urgent lines a fifth of the cost out of turn', () => {
    const scene = poolOf({ bands: { between: 'strict' } });
    for (let ms = 0; ms < 20_000; ms += 50) {
      while (scene.controller.stats().queued[BAND.standard] < 5) scene.arrive();
      if (scene.controller.stats().queued[BAND.sheddable] < 5) {
        scene.arrive({ band: BAND.sheddable, priority: 2 });
      }
      scene.advance(50);
      scene.end(scene.inFlight[0]!);
    }
    const recent = scene.outcomes.slice(-200);
    const urgent = recent.filter(({ what }) => what === 'promoted').length;
    expect(urgent / recent.length).toBeCloseTo(0.2, 1);
  });
});

it('a band gets no credit for the time in which nothing of it waited', () => {
  const scene = poolOf({ bands: { between: 'weighted', ceilings: [1, 1, 1] } }, 1);
  for (let i = 0; i < 200; i++) {
    scene.arrive({ band: BAND.critical });
    if (i > 0) scene.end(scene.inFlight[0]!);
  }
  for (let i = 0; i < 50; i++) {
    scene.arrive({ band: BAND.critical });
    scene.arrive({ band: BAND.sheddable });
  }
  for (let i = 0; i < 16; i++) scene.end(scene.inFlight[0]!);
  const recent = scene.outcomes.slice(-16).filter(({ request }) => request.band === BAND.sheddable);
  expect(recent.length).toBeLessThanOrEqual(4);
});

describe('limits in flight', () => {
  it('pass over a flow that has its number in flight', () => {
    const scene = poolOf({ requestQueueController: { maxInFlightPerFlow: 1 } }, 3);
    const [first] = [1, 2, 3].map((cost) => scene.arrive({ tenant: 'a', cost }));
    scene.arrive({ tenant: 'b' });
    expect(scene.inFlight.map(({ tenant, cost }) => [tenant, cost])).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    scene.end(first!);
    expect(scene.inFlight.map(({ tenant, cost }) => [tenant, cost])).toEqual([
      ['b', 1],
      ['a', 2],
    ]);
    scene.setPool({ readyBackends: 2 });
    expect(scene.inFlight).toHaveLength(3);
  });

  it('obey the backends of a model, and go on when a request of another flow ends', () => {
    let slots = 1;
    const scene = new PoolScene(settingsWith({}), {
      ports: { mayDispatch: ({ model }) => model !== 'busy' || slots > 0 },
    });
    scene.setPool({ ...READY, limit: 5 });
    const first = scene.arrive({ tenant: 'a', model: 'busy' });
    slots = 0;
    scene.arrive({ tenant: 'b', model: 'busy' });
    scene.arrive({ tenant: 'c', model: 'free' });
    expect(scene.inFlight.map(({ tenant }) => tenant)).toEqual(['a', 'c']);
    slots = 1;
    scene.end(first);
    expect(scene.inFlight.map(({ tenant }) => tenant)).toEqual(['c', 'b']);
  });

  it('bound the cost in flight of each backend', () => {
    const scene = poolOf({ requestQueueController: { maxCostPerBackend: 100 } }, 10);
    for (let i = 0; i < 3; i++) scene.arrive({ cost: 60 });
    expect(scene.inFlight).toHaveLength(2);
    scene.end(scene.inFlight[0]!);
    expect(scene.inFlight).toHaveLength(2);
  });
});

describe('code of others that throws', () => {
  it('refuses the request if it throws on arrival, and is passed over in the pump', () => {
    let isBroken = true;
    const scene = new PoolScene(settingsWith({}), {
      ports: {
        mayDispatch: ({ tenant }) => {
          if (isBroken && tenant === 'bad') throw new Error('broken');
          return true;
        },
      },
    });
    scene.setPool({ ...READY, limit: 1 });
    const first = scene.arrive({ band: BAND.critical });
    scene.arrive({ tenant: 'bad' });
    scene.arrive({ tenant: 'good', band: BAND.sheddable });
    expect(scene.queued).toHaveLength(2);
    scene.end(first);
    expect(scene.inFlight.map(({ tenant }) => tenant)).toEqual(['good']);
    expect(scene.errors).toHaveLength(1);
    scene.end(scene.inFlight[0]!);
    scene.cancel(scene.queued[0]!);
    scene.arrive({ tenant: 'bad' });
    expect(scene.outcomes.at(-1)?.what).toBe('internal');
    isBroken = false;
    scene.arrive({ tenant: 'bad' });
    expect(scene.outcomes.at(-1)?.what).toBe('bypass');
  });

  it('does not keep the place of a request whose owner throws', () => {
    const scene = poolOf();
    const owner = {
      dispatched: () => {
        throw new Error('broken');
      },
      dropped: () => {},
    };
    scene.arrive({}, owner);
    expect([scene.controller.stats().stock, scene.errors]).toEqual([0, [new Error('broken')]]);
  });

  it('reports a request that completes twice, and counts it once', () => {
    const scene = poolOf();
    const request = scene.arrive();
    scene.arrive();
    scene.end(request);
    scene.end(request);
    expect([scene.controller.stats().stock, scene.errors]).toEqual([
      1,
      [new Error('a request that is ended cannot complete')],
    ]);
  });
});

describe('reclaim', () => {
  const shutOut = (): PoolScene => {
    const scene = poolOf(
      { requestQueueController: { reclaim: true }, bands: { ceilings: [1, 1, 1] } },
      4,
    );
    for (const id of ['1', '2', '3', '4']) scene.arrive({ band: BAND.sheddable, id });
    scene.arrive({ band: BAND.critical });
    return scene;
  };
  const idsOf = (requests: readonly QueuedRequest[]) => requests.map(({ id }) => id);

  it('aborts the two newest sheddable requests without an answer after 500 ms', () => {
    const scene = shutOut();
    scene.inFlight[3]!.hasAnswerBegun = true;
    scene.advance(500);
    expect(scene.reclaimed).toEqual([]);
    scene.advance(100);
    expect(idsOf(scene.reclaimed)).toEqual(['3', '2']);
  });

  it('decides again only when both have ended', () => {
    const scene = shutOut();
    for (let i = 0; i < 3; i++) scene.arrive({ band: BAND.critical });
    scene.advance(700);
    scene.end(scene.reclaimed[0]!);
    scene.advance(1_000);
    expect(scene.reclaimed).toHaveLength(2);
    scene.end(scene.reclaimed[1]!);
    scene.advance(700);
    expect(idsOf(scene.reclaimed)).toEqual(['4', '3', '2', '1']);
  });

  it('aborts the same work at most three times', () => {
    const scene = poolOf({ requestQueueController: { reclaim: true } }, 1);
    const aborted: number[] = [];
    for (let i = 0; i < 5; i++) {
      const line = scene.arrive({ band: BAND.sheddable, id: 'same' });
      scene.arrive({ band: BAND.critical });
      scene.advance(1_000);
      aborted.push(scene.reclaimed.length);
      scene.end(line);
      scene.end(scene.inFlight[0]!);
    }
    expect(aborted).toEqual([1, 2, 3, 3, 3]);
  });

  it('aborts nothing while no backend is ready', () => {
    const scene = shutOut();
    scene.setPool({ readyBackends: 0 });
    scene.advance(5_000);
    expect(scene.reclaimed).toEqual([]);
  });
});

it('the pump lets other work run after 256 dispatches', () => {
  const scene = new PoolScene(settingsWith({}));
  for (let i = 0; i < 600; i++) scene.arrive({ tenant: `${i}` });
  scene.controller.updatePool({ ...READY, limit: 1_000 });
  expect(scene.inFlight).toHaveLength(256);
  scene.deferred.shift()?.();
  expect(scene.inFlight).toHaveLength(512);
  scene.settle();
  expect(scene.inFlight).toHaveLength(600);
});
