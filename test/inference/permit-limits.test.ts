import { AdaptiveLimit } from '../../core/dispatch/adaptive-limit';
import type { Permit } from '../../inference/dispatcher';
import { createPermitDispatcher } from '../../inference/permit-dispatcher';
import { permitRequest as request, settle, unguarded } from './permit-requests';
import { acquire } from '../support/promises-of-sending';

it('never lowers a limit below one request, however often the server refuses', () => {
  const limit = new AdaptiveLimit(16);
  const seen = [];
  for (let i = 0; i < 7; i++) {
    limit.onReply({ signal: 'overload', mark: limit.mark, pauseMs: 0, nowMs: i });
    seen.push(limit.limit);
  }
  expect(seen).toEqual([8, 4, 2, 1, 1, 1, 1]);
  // At a limit of 1, a single success is enough to raise it.
  limit.onReply({ signal: 'success', mark: limit.mark, pauseMs: 0, nowMs: 9 });
  expect(limit.limit).toBe(2);
});

it('frees the gateway permit of a waiter that is recalled', async () => {
  const dispatcher = createPermitDispatcher({
    global: 4,
    perModel: 4,
    adaptive: true,
    onGuardTripped: unguarded,
  });
  const gateway = { key: 'g', limit: 3 };
  const others = [1, 2, 3].map(() => dispatcher.tryAcquire(request({ model: 'other' })));
  const first = dispatcher.tryAcquire(request({ gateway }));
  first?.sent();
  // Both hold a permit of the model and one of the gateway, and wait for a global one.
  const waits = [1, 2].map(() => acquire(dispatcher, request({ gateway })));
  first?.replied('overload', 0);
  // The limit is 2 now, so one of them was recalled.
  expect(dispatcher.limitOf('m')).toMatchObject({ limit: 2 });
  first?.release();
  for (const permit of others) permit?.release();
  const granted: Permit[] = await Promise.all(waits);
  for (const permit of granted) permit.release();
  expect(dispatcher.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  const after = [1, 2, 3, 4].map(() => dispatcher.tryAcquire(request({ model: 'n', gateway })));
  expect(after.map((permit) => permit !== null)).toEqual([true, true, true, false]);
  for (const permit of after) permit?.release();
});

it('lets no newcomer overtake requests that wait for the end of a pause', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  let nowMs = 0;
  const dispatcher = createPermitDispatcher({
    global: 4,
    perModel: 2,
    adaptive: true,
    onGuardTripped: unguarded,
    now: () => nowMs,
  });
  const refused = dispatcher.tryAcquire(request());
  refused?.sent();
  refused?.replied('overload', 1_000);
  refused?.release();
  const order: string[] = [];
  const waiting = acquire(dispatcher, request()).then((permit) => {
    order.push('waiting');
    return permit;
  });
  // By the clock, the pause is over, but its timer has not fired yet.
  nowMs = 1_000;
  expect(dispatcher.tryAcquire(request())).toBeNull();
  const late = acquire(dispatcher, request()).then((permit) => {
    order.push('late');
    return permit;
  });
  await settle();
  expect(order).toEqual([]);
  jest.advanceTimersByTime(1_000);
  (await waiting).release();
  (await late).release();
  jest.useRealTimers();
  expect(order).toEqual(['waiting', 'late']);
});

// Each read of the clock that finds the pause over is the first one in some run.
it.each([1, 2, 3, 4])(
  'grants a permit if the pause ends at reading %i of the clock',
  async (at) => {
    let reads = 0;
    let nowMs = () => 0;
    const dispatcher = createPermitDispatcher({
      global: 4,
      perModel: 2,
      adaptive: true,
      onGuardTripped: unguarded,
      now: () => nowMs(),
    });
    const refused = dispatcher.tryAcquire(request());
    refused?.sent();
    refused?.replied('overload', 50);
    refused?.release();
    nowMs = () => (++reads >= at ? 50 : 49);
    const permit = await Promise.race([acquire(dispatcher, request()), settleAfterPause()]);
    expect(permit).toHaveProperty('release');
  },
);

/** Resolves with null when every timer of a pause of 1 ms has run. */
const settleAfterPause = (): Promise<null> =>
  new Promise((resolve) => setTimeout(() => resolve(null), 500));

it.each([
  ['concurrency.per_model', { perModel: 1 }, {}],
  ['max_concurrency', {}, { gateway: { key: 'g', limit: 1 } }],
  ['concurrency.global', { global: 1 }, {}],
])('names the setting that makes a request wait: %s', async (setting, limits, over) => {
  const options = { global: 9, perModel: 9, onGuardTripped: unguarded };
  const dispatcher = createPermitDispatcher({ ...options, ...limits });
  const first = dispatcher.tryAcquire(request(over));
  expect(dispatcher.scarcePermitOf('m')).toBe(null);
  const waiting = acquire(dispatcher, request(over));
  expect(dispatcher.scarcePermitOf('m')).toBe(setting);
  first?.release();
  (await waiting).release();
  expect(dispatcher.scarcePermitOf('m')).toBe(null);
});

it('names no setting while the limit of the model is lowered', async () => {
  const dispatcher = createPermitDispatcher({
    ...{ global: 9, perModel: 4, adaptive: true, onGuardTripped: unguarded },
  });
  const first = dispatcher.tryAcquire(request());
  const second = dispatcher.tryAcquire(request());
  first?.sent();
  first?.replied('overload', 0);
  const waiting = acquire(dispatcher, request());
  expect(dispatcher.scarcePermitOf('m')).toBe(null);
  first?.release();
  second?.release();
  (await waiting).release();
});
