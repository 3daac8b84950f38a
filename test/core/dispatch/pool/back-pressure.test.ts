import { retryAfterSec, saturation } from '../../../../core/dispatch/pool/back-pressure';
import { BAND } from '../../../../core/dispatch/queue/band';
import { admitted } from '../../../../core/dispatch/pool/admitted';
import { PoolScene } from './pool-scene';
import { settingsWith } from './settings';

it('saturation is the part of the bound that is in flight, and 1 without backends', () => {
  expect(saturation({ stock: 3, fullAt: 4, readyBackends: 1 })).toBe(0.75);
  expect(saturation({ stock: 3, fullAt: 2, readyBackends: 1 })).toBe(1.5);
  expect(saturation({ stock: 0, fullAt: 4, readyBackends: 0 })).toBe(1);
});

it('clients are told to come back when the cost ahead of them is served, after 1 to 60 s', () => {
  expect([retryAfterSec(0, 0), retryAfterSec(50, 100), retryAfterSec(450, 100)]).toEqual([1, 1, 5]);
  expect(retryAfterSec(1e9, 1)).toBe(60);
});

it('clients are told to come back soon while nothing is dispatched', () => {
  expect(retryAfterSec(1e9, 0)).toBe(5);
});

describe('the signals of a pool', () => {
  it('count the cost of its own and higher bands as ahead', () => {
    const scene = new PoolScene(settingsWith({}));
    scene.setPool({ readyBackends: 1, limit: 1 });
    scene.arrive({ cost: 100 });
    scene.arrive({ band: BAND.standard, cost: 100 });
    scene.arrive({ band: BAND.sheddable, cost: 200 });
    const { controller } = scene;
    expect([BAND.critical, BAND.sheddable].map((band) => controller.retryAfterSec(band))).toEqual([
      1, 30,
    ]);
    expect(controller.stats()).toMatchObject({ saturation: 1, queuedCost: 300, activeFlows: 2 });
  });
});

describe('a request that is awaited', () => {
  const options = { tenant: 't', model: 'm', cost: 1 };

  it('resolves at its dispatch', async () => {
    const { controller, ...scene } = new PoolScene(settingsWith({}));
    controller.updatePool({ ...scene.pool, readyBackends: 1, limit: 1 });
    const first = await admitted(controller, options);
    expect(first.by).toBe('bypass');
    const second = admitted(controller, options);
    controller.onRequestComplete(first.request);
    expect((await second).by).toBe('queue');
  });

  it('rejects with the reason if it leaves unserved', async () => {
    const { controller } = new PoolScene(settingsWith({}));
    const waiting = admitted(controller, options);
    controller.close();
    await expect(waiting).rejects.toMatchObject({ code: 'shutting_down' });
  });
});
