import fc from 'fast-check';
import { BAND } from '../../../../core/dispatch/queue/band';
import { ControllerModel } from './controller-model';
import { PoolScene } from './pool-scene';
import { settingsWith } from './settings';

const SETTINGS = fc
  .record({
    between: fc.constantFrom('strict' as const, 'weighted' as const, 'strict_floor' as const),
    watermarkPerBackend: fc.constantFrom(null, 1, 2, 5),
    hysteresis: fc.constantFrom('seed' as const, 'schmitt' as const),
    deviation: fc.constantFrom(0.1, 0.5),
    enqueue: fc.constantFrom('all' as const, 'all' as const, 'critical' as const),
    scheduler: fc.constantFrom('start' as const, 'finish' as const),
    promoteAfterMs: fc.constantFrom(null, 400),
    totalCapacity: fc.constantFrom(6, 20),
  })
  .map((one) =>
    settingsWith({
      fairRequestQueue: {
        ...{ totalCapacity: one.totalCapacity, flowCapacity: 3, sheddableCapacity: 4 },
        ...{ queueBytes: 100, sheddableBytes: 40, enqueue: one.enqueue, scheduler: one.scheduler },
        ...{ queueTtlMs: 3_000, batchQueueTtlMs: 5_000, noBackendTtlMs: 2_000 },
      },
      requestQueueController: {
        watermarkPerBackend: one.watermarkPerBackend,
        percentageDeviationForBounds: one.watermarkPerBackend === null ? null : one.deviation,
        hysteresis: one.hysteresis,
      },
      bands: { between: one.between, promoteAfterMs: one.promoteAfterMs },
    }),
  );

const STEP = fc.record({
  do: fc.constantFrom(
    ...(['arrive', 'arrive', 'arrive', 'arrive', 'end', 'end', 'end'] as const),
    ...(['cancel', 'mark', 'advance', 'advance', 'advance', 'pool'] as const),
  ),
  band: fc.constantFrom(BAND.critical, BAND.standard, BAND.sheddable, BAND.sheddable),
  tenant: fc.constantFrom('a', 'b', 'c', 'd'),
  priority: fc.constantFrom(2 as const, 3 as const, 3 as const, 4 as const),
  cost: fc.constantFrom<number[]>(1, 3, 20),
  bytes: fc.constantFrom<number[]>(0, 5, 30),
  pick: fc.nat(1_000),
  ms: fc.constantFrom<number[]>(50, 130, 500),
});
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

function run(settings: ReturnType<typeof settingsWith>, steps: readonly Step[]): PoolScene {
  const scene: PoolScene = new PoolScene(settings, {
    checks: {
      dispatched: (request, by) => model.onDispatched(request, by),
      dropped: (request, code) => model.onDropped(request, code),
    },
  });
  const model = new ControllerModel(scene);
  scene.setPool({ readyBackends: 2, limit: 6, sheddableCap: Infinity });
  for (const step of steps) {
    perform(scene, step);
    scene.controller.pump();
    scene.settle();
    // An owner that throws is reported like a bug of the controller.
    if (scene.errors.length > 0) throw scene.errors[0];
    model.check();
  }
  return scene;
}

function perform(scene: PoolScene, { do: what, pick, ms, cost, ...step }: Step): void {
  const { queued, inFlight } = scene;
  if (what === 'arrive') {
    const { band } = step;
    const priority = band === BAND.sheddable ? step.priority : 3;
    const deadlineMs = pick % 5 === 0 ? scene.nowMs + ms : Infinity;
    scene.arrive({ ...step, cost, priority, deadlineMs });
  }
  const running = inFlight[pick % Math.max(1, inFlight.length)];
  if (what === 'end' && running !== undefined) scene.end(running, cost);
  const waiting = queued[pick % Math.max(1, queued.length)];
  if (what === 'cancel' && waiting !== undefined) {
    if (!scene.cancel(waiting) || scene.cancel(waiting)) throw new Error('cancels once');
  }
  if (what === 'mark') waiting?.markCancelled();
  if (what === 'advance') scene.advance(ms);
  if (what === 'pool') {
    const sheddableCap = pick % 3 === 0 ? 1 : Infinity;
    scene.setPool({ readyBackends: pick % 4, limit: pick % 13, sheddableCap });
  }
}

describe('a request queue controller', () => {
  it('keeps every rule under random arrivals, ends, cancels, outages and time', () => {
    fc.assert(
      fc.property(SETTINGS, fc.array(STEP, { maxLength: 150, size: 'max' }), (settings, steps) => {
        const scene = run(settings, steps);
        while (scene.inFlight.length > 0) scene.end(scene.inFlight[0]!);
        scene.advance(10_000);
        expect([scene.controller.stats().stock, scene.queued]).toEqual([0, []]);
      }),
      { numRuns: 200 },
    );
  });

  it('does the same for the same input', () => {
    fc.assert(
      fc.property(SETTINGS, fc.array(STEP, { maxLength: 100, size: 'max' }), (settings, steps) => {
        expect(run(settings, steps).trace).toBe(run(settings, steps).trace);
      }),
      { numRuns: 20 },
    );
  });
});
