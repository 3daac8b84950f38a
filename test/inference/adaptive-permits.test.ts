import fc from 'fast-check';
import type { LoadSignal } from '../../core/dispatch/outcome';
import type { AcquireRequest, Permit } from '../../inference/dispatcher';
import { createPermitDispatcher } from '../../inference/permit-dispatcher';
import { PermitHistory } from './permit-history';
import { permitRequest, unguarded } from './permit-requests';
import { acquire } from '../support/promises-of-sending';

const GATEWAY = { key: 'g', limit: 6 };
const request = (model = 'm', changes: Partial<AcquireRequest> = {}): AcquireRequest =>
  permitRequest({ model, ...changes });
const settle = () => new Promise<void>((resolve) => process.nextTick(resolve));

function dispatcherOf(limits: { global?: number; perModel?: number }) {
  const options = { global: 100, perModel: 8, adaptive: true, onGuardTripped: unguarded };
  return createPermitDispatcher({ ...options, ...limits });
}

beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
afterEach(() => jest.useRealTimers());

/** Sends a request with `permit`, gets this reply, and releases the permit. */
function replied(permit: Permit, signal: 'success' | 'overload', pauseMs = 0) {
  permit.sent();
  permit.replied(signal, pauseMs);
  permit.release();
}

describe('permits of an overloaded server', () => {
  it('are halved once by a burst of refusals, and not taken from requests in flight', () => {
    const dispatcher = dispatcherOf({});
    const permits = Array.from({ length: 8 }, () => dispatcher.tryAcquire(request())!);
    expect(permits.map((permit) => permit.sent())).toEqual(Array(8).fill(8));
    for (const permit of permits.slice(0, 3)) permit.replied('overload', 0);
    expect(dispatcher.limitOf('m')).toEqual({ limit: 4, max: 8, pausedMs: 0 });
    permits.slice(0, 4).forEach((permit) => permit.release());
    // Four are still in flight, which is the limit.
    expect(dispatcher.tryAcquire(request())).toBeNull();
    permits[4]!.release();
    const next = dispatcher.tryAcquire(request());
    expect(next?.sent()).toBe(4);
    expect(dispatcher.tryAcquire(request())).toBeNull();
  });

  it('of one model do not affect another model', () => {
    const dispatcher = dispatcherOf({});
    replied(dispatcher.tryAcquire(request('m'))!, 'overload', 5_000);
    expect(dispatcher.limitOf('n')).toEqual({ limit: 8, max: 8, pausedMs: 0 });
    expect(dispatcher.tryAcquire(request('m'))).toBeNull();
    expect(dispatcher.tryAcquire(request('n'))).not.toBeNull();
  });

  it('keep a lowered limit while the model is idle', () => {
    const dispatcher = dispatcherOf({});
    replied(dispatcher.tryAcquire(request())!, 'overload');
    expect(dispatcher.limitOf('m').limit).toBe(4);
    expect(dispatcher.stats().models).toHaveLength(1);
    for (let i = 0; i < 20; i++) replied(dispatcher.tryAcquire(request())!, 'success');
    expect(dispatcher.limitOf('m').limit).toBe(8);
    expect(dispatcher.stats().models).toEqual([]);
  });

  it('keep the lowered limits of a bounded number of idle models', () => {
    const dispatcher = dispatcherOf({});
    const busy = dispatcher.tryAcquire(request('busy'))!;
    for (let i = 0; i < 1_500; i++) {
      replied(dispatcher.tryAcquire(request(`m${i}`))!, 'overload');
    }
    expect(dispatcher.stats().models).toHaveLength(1_000);
    expect(dispatcher.stats()).toMatchObject({ inFlight: 1, waiting: 0 });
    expect(dispatcher.limitOf('m1499').limit).toBe(4);
    busy.release();
  });

  it('have a fixed limit if it is not adaptive', () => {
    const options = { global: 9, perModel: 2, adaptive: false, onGuardTripped: unguarded };
    const dispatcher = createPermitDispatcher(options);
    const permit = dispatcher.tryAcquire(request())!;
    expect(permit.sent()).toBeNull();
    permit.replied('overload', 60_000);
    expect(dispatcher.limitOf('m')).toEqual({ limit: 2, max: 2, pausedMs: 0 });
    expect(dispatcher.tryAcquire(request())).not.toBeNull();
  });
});

describe('Retry-After', () => {
  it('pauses a model until its time is over, even if it is extended', async () => {
    const dispatcher = dispatcherOf({});
    const [first, second] = [dispatcher.tryAcquire(request())!, dispatcher.tryAcquire(request())!];
    second.sent();
    replied(first, 'overload', 1_000);
    let granted = 0;
    const waits = [1, 2].map(() =>
      acquire(dispatcher, request()).then((permit) => {
        granted++;
        return permit;
      }),
    );
    expect(jest.getTimerCount()).toBe(1);
    await jest.advanceTimersByTimeAsync(600);
    second.replied('overload', 1_000);
    second.release();
    expect(dispatcher.limitOf('m')).toEqual({ limit: 4, max: 8, pausedMs: 1_000 });
    await jest.advanceTimersByTimeAsync(999);
    expect(granted).toBe(0);
    await jest.advanceTimersByTimeAsync(1);
    expect(granted).toBe(2);
    expect(jest.getTimerCount()).toBe(0);
    for (const wait of waits) replied(await wait, 'success');
  });

  it('leaves no timer when no request waits any more', async () => {
    const dispatcher = dispatcherOf({});
    replied(dispatcher.tryAcquire(request())!, 'overload', 300_000);
    expect(jest.getTimerCount()).toBe(0);
    const leaving = new AbortController();
    const waits = [1, 2].map(() => acquire(dispatcher, request(), leaving.signal));
    expect(jest.getTimerCount()).toBe(1);
    leaving.abort();
    await Promise.allSettled(waits);
    expect(jest.getTimerCount()).toBe(0);
    expect(dispatcher.stats().waiting).toBe(0);
  });

  it("returns staged waiters to the front of the model's queue", async () => {
    const dispatcher = dispatcherOf({ global: 2, perModel: 4 });
    const first = dispatcher.tryAcquire(request('m'))!;
    const other = dispatcher.tryAcquire(request('x'))!;
    const order: string[] = [];
    const wait = (name: string, model: string) =>
      void acquire(dispatcher, request(model)).then((permit) => {
        order.push(name);
        permit.release();
      });
    for (const name of ['m1', 'm2', 'm3', 'm4', 'm5']) wait(name, 'm');
    wait('n1', 'n');
    first.sent();
    first.replied('overload', 1_000);
    // A free global permit skips the paused model.
    other.release();
    await settle();
    expect(order).toEqual(['n1']);
    first.release();
    await jest.advanceTimersByTimeAsync(1_000);
    await settle();
    expect(order).toEqual(['n1', 'm1', 'm2', 'm3', 'm4', 'm5']);
    expect(dispatcher.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });
});

describe('adaptive permits with any history', () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constant('acquire' as const),
      model: fc.constantFrom('m', 'n', 'o'),
      tenant: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(2, 3, 4),
    }),
    fc.record({
      do: fc.constant('reply' as const),
      pick: fc.nat(),
      signal: fc.constantFrom<LoadSignal>('success', 'success', 'overload', 'none'),
      pauseMs: fc.constantFrom(0, 0, 100, 900_000),
    }),
    fc.record({ do: fc.constant('abort' as const), pick: fc.nat() }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(10, 100, 300_000) }),
  );
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

  it('grants nothing above a limit or in a pause, and loses neither permit nor waiter', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 150 }),
        fc.record({
          global: fc.integer({ min: 1, max: 8 }),
          gateway: fc.integer({ min: 1, max: 6 }),
          perModel: fc.integer({ min: 1, max: 5 }),
        }),
        async (steps, limits) => {
          const { dispatcher, history, check } = openHistory(limits);
          const run = async (action: Step) => {
            if (action.do === 'acquire') history.acquire(requestOf(action, limits.gateway));
            else if (action.do === 'abort') history.abort(action.pick);
            else if (action.do === 'pass') await jest.advanceTimersByTimeAsync(action.ms);
            else answer(history.take(action.pick), action);
            await settle();
            check();
          };
          for (const action of steps) await run(action);
          for (let i = 0; i < 400 && !history.isOver; i++) {
            await run({ do: 'pass', ms: 300_000 });
            await run({ do: 'reply', pick: 0, signal: 'success', pauseMs: 0 });
          }
          await history.end();
          expect(history.isOver).toBe(true);
          expect(dispatcher.stats().gateways.filter((one) => one.held > 0)).toEqual([]);
          expect(jest.getTimerCount()).toBe(0);
        },
      ),
      { numRuns: 100 },
    );
  });
});

interface Limits {
  readonly global: number;
  readonly gateway: number;
  readonly perModel: number;
}

/** Models m and n share a gateway. */
const OF_GATEWAY = ['m', 'n'];

/** A dispatcher whose grants and snapshots are checked against its limits. */
function openHistory({ global, gateway, perModel }: Limits) {
  const dispatcher = dispatcherOf({ global, perModel });
  const history: PermitHistory = new PermitHistory(dispatcher, ({ model, permit }) => {
    const { limit, pausedMs } = dispatcher.limitOf(model);
    expect(history.heldOf(model)).toBeLessThanOrEqual(limit);
    expect(pausedMs).toBe(0);
    expect(history.held.length).toBeLessThanOrEqual(global);
    expect(history.heldOf(...OF_GATEWAY)).toBeLessThanOrEqual(gateway);
    permit.sent();
  });
  const check = (): void => {
    const { inFlight, waiting, gateways } = dispatcher.stats();
    for (const { held } of gateways) {
      expect(held).toBeGreaterThanOrEqual(history.heldOf(...OF_GATEWAY));
      expect(held).toBeLessThanOrEqual(gateway);
    }
    expect([inFlight, waiting]).toEqual([history.held.length, history.waiting]);
    expect(jest.getTimerCount()).toBeLessThanOrEqual(3);
  };
  return { dispatcher, history, check };
}

function requestOf(
  { model, tenant, priority }: { model: string; tenant: string; priority: number },
  limit: number,
): AcquireRequest {
  const shared = OF_GATEWAY.includes(model) ? { gateway: { ...GATEWAY, limit } } : {};
  return { ...request(model, shared), tenant, priority };
}

function answer(permit: Permit | undefined, reply: { signal: LoadSignal; pauseMs: number }): void {
  permit?.replied(reply.signal, reply.pauseMs);
  permit?.release();
}
