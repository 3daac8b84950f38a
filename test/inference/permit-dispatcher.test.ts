import fc from 'fast-check';
import type { Permit } from '../../inference/dispatcher';
import { createPermitDispatcher } from '../../inference/permit-dispatcher';
import { PermitHistory } from './permit-history';
import { permitRequest as request, settle, unguarded } from './permit-requests';
import { acquire } from '../support/promises-of-sending';

describe('permits', () => {
  it('are limited per model first, then over all models', async () => {
    const dispatcher = createPermitDispatcher({
      global: 3,
      perModel: 2,
      onGuardTripped: unguarded,
    });
    expect(dispatcher.tryAcquire(request())).not.toBeNull();
    const second = dispatcher.tryAcquire(request());
    expect(dispatcher.tryAcquire(request())).toBeNull();
    expect(dispatcher.tryAcquire(request({ model: 'n' }))).not.toBeNull();
    expect(dispatcher.tryAcquire(request({ model: 'n' }))).toBeNull();
    second!.release();
    expect(dispatcher.tryAcquire(request({ model: 'n' }))).not.toBeNull();
  });

  it('go to a waiter before the release returns, so that no newcomer overtakes', async () => {
    const dispatcher = createPermitDispatcher({
      global: 1,
      perModel: 1,
      onGuardTripped: unguarded,
    });
    const held = dispatcher.tryAcquire(request())!;
    const waiting = acquire(dispatcher, request());
    held.release();
    expect(dispatcher.tryAcquire(request())).toBeNull();
    (await waiting).release();
    expect(dispatcher.stats()).toEqual({
      inFlight: 0,
      limit: 1,
      waiting: 0,
      guardTripped: false,
      models: [],
      gateways: [],
    });
  });

  it('held while waiting for a process permit do not block other models', async () => {
    const dispatcher = createPermitDispatcher({
      global: 2,
      perModel: 2,
      onGuardTripped: unguarded,
    });
    const hot = [dispatcher.tryAcquire(request())!, dispatcher.tryAcquire(request())!];
    const order: string[] = [];
    const wait = async (model: string) => {
      const permit = await acquire(dispatcher, request({ model }));
      order.push(model);
      return permit;
    };
    const waits = [wait('m'), wait('m'), wait('cold')];
    expect(dispatcher.stats().waiting).toBe(3);
    hot.forEach((permit) => permit.release());
    await settle();
    expect(order).toEqual(['cold', 'm']);
    (await waits[2]!).release();
    (await waits[0]!).release();
    (await waits[1]!).release();
  });

  it('of one gateway are limited together, and batches of all its models share them', async () => {
    const options = { global: 9, perModel: 8, onGuardTripped: unguarded };
    const dispatcher = createPermitDispatcher(options);
    const gateway = { key: 'g', limit: 2 };
    const held = ['m', 'm'].map((model) => dispatcher.tryAcquire(request({ model, gateway }))!);
    expect(dispatcher.tryAcquire(request({ model: 'n', gateway }))).toBeNull();
    const elsewhere = dispatcher.tryAcquire(request({ model: 'x' }));
    expect(elsewhere).not.toBeNull();
    const order: string[] = [];
    const waits = ['m', 'm', 'm', 'n', 'n', 'n'].map(async (model) => {
      const permit = await acquire(dispatcher, request({ model, batch: model, gateway }));
      permit.sent();
      order.push(model);
      permit.release();
    });
    held[0]!.release();
    await Promise.all(waits);
    expect(order).toEqual(['m', 'n', 'm', 'n', 'm', 'n']);
    held[1]!.release();
    elsewhere!.release();
    expect(dispatcher.stats()).toMatchObject({
      ...{ inFlight: 0, waiting: 0, models: [] },
      gateways: [{ key: 'g', held: 0 }],
    });
  });

  it('serve tenants in turn, within a tenant by priority, then first come', async () => {
    const dispatcher = createPermitDispatcher({
      global: 9,
      perModel: 1,
      onGuardTripped: unguarded,
    });
    const order: string[] = [];
    const held = dispatcher.tryAcquire(request())!;
    const waits = [
      ['a1', 'a', 3],
      ['a2', 'a', 3],
      ['a3', 'a', undefined],
      ['b1', 'b', 3],
      ['z1', 'z', 4],
      ['c1', 'c', 3],
      ['b2', 'b', 3],
      ['u1', 'a', 2],
    ].map(async ([name, tenant, priority]) => {
      const turn = { tenant: tenant as string, ...(priority && { priority: priority as number }) };
      const permit = await acquire(dispatcher, request(turn));
      permit.sent();
      order.push(name as string);
      permit.release();
    });
    held.release();
    await Promise.all(waits);
    expect(order).toEqual(['u1', 'b1', 'z1', 'c1', 'a1', 'b2', 'a2', 'a3']);
  });

  it.each([
    ['half each, however short the window of one is', {}, 0.5],
    ['by their weights', { hasty: 1, calm: 3 }, 0.25],
  ])('are shared by two tenants: %s', async (_what, tenants, expected) => {
    const fairness = { default: 1, tenants: tenants as Record<string, number>, models: {} };
    const dispatcher = createPermitDispatcher({
      ...{ global: 4, perModel: 16, fairness, onGuardTripped: unguarded },
    });
    const granted = { hasty: 0, calm: 0 };
    const held: Permit[] = [];
    let turns = 0;
    const chunk = async (tenant: 'hasty' | 'calm', priority: number) => {
      while (turns < 800) {
        const permit = await acquire(dispatcher, request({ tenant, priority }));
        permit.sent();
        held.push(permit);
        granted[tenant]++;
        turns++;
      }
    };
    const chunks = [...Array.from({ length: 20 }, () => chunk('hasty', 2)), chunk('calm', 4)];
    chunks.push(chunk('calm', 4));
    const isDone = Promise.all(chunks).then(() => true);
    // Permits are released one at a time, as answers arrive.
    while (!(await Promise.race([isDone, settle().then(() => false)]))) held.shift()?.release();
    expect(granted.hasty / (granted.hasty + granted.calm)).toBeCloseTo(expected, 1);
  });

  it.each([
    ['what they really cost', (permit: Permit) => permit.used(30), 0.75],
    ['what they were expected to cost, if nothing else is known', () => {}, 0.5],
  ])('are charged %s', async (_what, report, shareOfA) => {
    const dispatcher = createPermitDispatcher({
      ...{ global: 9, perModel: 1, onGuardTripped: unguarded },
    });
    let permit = dispatcher.tryAcquire(request({ tenant: 'b' }))!;
    const order: string[] = [];
    const wait = (tenant: string): void => {
      const granted = acquire(dispatcher, request({ tenant, cost: 10 }));
      void granted.then((next) => {
        order.push(tenant);
        wait(tenant);
        next.sent();
        if (tenant === 'b') report(next);
        permit = next;
      });
    };
    ['a', 'a', 'b', 'b'].forEach(wait);
    for (let i = 0; i < 60; i++) {
      permit.release();
      await settle();
    }
    expect(order.filter((tenant) => tenant === 'a').length / 60).toBeCloseTo(shareOfA, 1);
  });

  it('are charged nothing for requests that were never sent', async () => {
    const dispatcher = createPermitDispatcher({
      ...{ global: 9, perModel: 2, onGuardTripped: unguarded },
    });
    const held = dispatcher.tryAcquire(request({ tenant: 'c', cost: 10 }))!;
    held.sent();
    dispatcher.tryAcquire(request({ tenant: 'a', cost: 1_000 }))!.release();
    dispatcher.tryAcquire(request({ tenant: 'c', cost: 10 }));
    const order: string[] = [];
    const wait = async (tenant: string): Promise<void> => {
      const permit = await acquire(dispatcher, request({ tenant, cost: 10 }));
      order.push(tenant);
      permit.sent();
      permit.release();
    };
    const waits = ['a', 'b', 'a', 'b'].map(wait);
    held.release();
    await Promise.all(waits);
    expect(order).toEqual(['a', 'b', 'a', 'b']);
  });

  it('at a wide limit are shared by the weights of models', async () => {
    const fairness = { default: 1, tenants: {}, models: { m: 3 } };
    const dispatcher = createPermitDispatcher({
      ...{ global: 1, perModel: 9, fairness, onGuardTripped: unguarded },
    });
    let permit = dispatcher.tryAcquire(request({ tenant: 'x' }))!;
    const order: string[] = [];
    const wait = (model: string): void => {
      void acquire(dispatcher, request({ tenant: model, model })).then((next) => {
        order.push(model);
        wait(model);
        next.sent();
        permit = next;
      });
    };
    ['m', 'm', 'n', 'n'].forEach(wait);
    for (let i = 0; i < 40; i++) {
      permit.release();
      await settle();
    }
    expect(order.filter((model) => model === 'm')).toHaveLength(30);
  });

  it('go to tenants without an open request first, if the server divides', async () => {
    const dispatcher = createPermitDispatcher({
      ...{ global: 3, perModel: 9, divides: true, onGuardTripped: unguarded },
    });
    const of = (tenant: string) => request({ tenant, divides: true, cost: 1 });
    const held = ['a', 'a', 'a'].map((tenant) => dispatcher.tryAcquire(of(tenant))!);
    const order: string[] = [];
    for (const tenant of ['a', 'a', 'b', 'b', 'c']) {
      void acquire(dispatcher, of(tenant)).then(() => order.push(tenant));
    }
    for (const permit of held) permit.release();
    await settle();
    expect(order).toEqual(['b', 'c', 'a']);
  });

  it('keep no trace of aborted waiters', async () => {
    const dispatcher = createPermitDispatcher({
      global: 1,
      perModel: 2,
      onGuardTripped: unguarded,
    });
    const held = dispatcher.tryAcquire(request({ model: 'x' }))!;
    const controller = new AbortController();
    const waits = ['m', 'm', 'm', 'n'].map((model) =>
      acquire(dispatcher, request({ model }), controller.signal),
    );
    const survivor = acquire(dispatcher, request());
    controller.abort(new Error('stopped'));
    for (const result of await Promise.allSettled(waits)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } });
    }
    held.release();
    (await survivor).release();
    expect(dispatcher.stats().models).toEqual([]);
  });

  it('that are released twice trip the guard once and free nothing', async () => {
    const tripped: string[] = [];
    const dispatcher = createPermitDispatcher({
      global: 2,
      perModel: 2,
      onGuardTripped: (error) => tripped.push(error.code),
    });
    const first = dispatcher.tryAcquire(request())!;
    dispatcher.tryAcquire(request());
    first.release();
    first.release();
    first.release();
    expect(tripped).toEqual(['permit_released_twice']);
    expect(dispatcher.stats()).toMatchObject({ inFlight: 1, guardTripped: true });
    expect(dispatcher.tryAcquire(request())).not.toBeNull();
    expect(dispatcher.tryAcquire(request())).toBeNull();
  });

  it('cannot have limits below 1 or with fractions', () => {
    for (const global of [0, 1.5, Number.NaN]) {
      expect(() =>
        createPermitDispatcher({ global, perModel: 1, onGuardTripped: unguarded }),
      ).toThrow(/global must be a whole number of at least 1/);
    }
  });
});

describe('permits with any history of waiting, releasing and aborting', () => {
  const MODELS = ['m', 'n', 'o'];
  const step = fc.oneof(
    fc.record({
      do: fc.constant('acquire' as const),
      model: fc.constantFrom(...MODELS),
      tenant: fc.constantFrom('a', 'b', 'c'),
      priority: fc.constantFrom(2, 3, 4),
    }),
    fc.record({ do: fc.constant('release' as const), pick: fc.nat() }),
    fc.record({ do: fc.constant('abort' as const), pick: fc.nat() }),
  );

  it('stay within both limits, lose no waiter and are all free at the end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 120 }),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 4 }),
        async (steps, global, perModel) => {
          const dispatcher = createPermitDispatcher({
            global,
            perModel,
            onGuardTripped: unguarded,
          });
          const history = new PermitHistory(dispatcher);
          const check = () => {
            expect(history.held.length).toBeLessThanOrEqual(global);
            for (const model of MODELS) {
              expect(history.heldOf(model)).toBeLessThanOrEqual(perModel);
            }
            expect(dispatcher.stats()).toMatchObject({
              inFlight: history.held.length,
              waiting: history.waiting,
            });
          };
          for (const action of steps) {
            if (action.do === 'acquire') history.acquire(request(action));
            else if (action.do === 'abort') history.abort(action.pick);
            else history.take(action.pick)?.release();
            await settle();
            check();
          }
          for (let i = 0; i < 200 && !history.isOver; i++) {
            history.take(0)?.release();
            await settle();
            check();
          }
          await history.end();
          expect(history.isOver).toBe(true);
          expect(dispatcher.stats()).toMatchObject({ inFlight: 0, waiting: 0, models: [] });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('never serve a tenant twice while another one of equal priority waits', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 2, maxLength: 60 }),
        async (tenants) => {
          const dispatcher = createPermitDispatcher({
            global: 1,
            perModel: 1,
            onGuardTripped: unguarded,
          });
          const held = dispatcher.tryAcquire(request())!;
          const left = new Map<string, number>();
          const turns: string[] = [];
          const waits = tenants.map(async (tenant) => {
            left.set(tenant, (left.get(tenant) ?? 0) + 1);
            const permit = await acquire(dispatcher, request({ tenant }));
            permit.sent();
            turns.push(tenant);
            permit.release();
          });
          held.release();
          await Promise.all(waits);
          expect(turns).toHaveLength(tenants.length);
          const sinceServed = new Map<string, Set<string>>();
          for (const tenant of turns) {
            for (const [other, waiting] of left) {
              if (other === tenant || waiting === 0) continue;
              const seen = sinceServed.get(other) ?? new Set();
              expect(seen.has(tenant)).toBe(false);
              sinceServed.set(other, seen.add(tenant));
            }
            left.set(tenant, left.get(tenant)! - 1);
            sinceServed.set(tenant, new Set());
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
