import { BAND } from '../../../core/dispatch/queue/band';
import { LearntLimit } from '../../../core/dispatch/backends/learnt-limit';
import { createBreaker } from '../../../core/dispatch/breaker';
import { PoolBackend } from '../../../gateway/pools/pool-backend';
import type { ExchangeEnd } from '../../../inference/proxy/exchange-end';
import type { ProxiedBackend } from '../../../inference/proxy/proxied-backend';

const END: ExchangeEnd = {
  ...{ outcome: 'answered', status: 200, isHeadSent: true, isRefused: false },
  ...{ bytes: 1, ttfbMs: 1, usage: null, events: 0, message: null },
};
const LOST: ExchangeEnd = { ...END, outcome: 'lost', status: null, isHeadSent: false };
const REFUSED: ExchangeEnd = { ...LOST, outcome: 'unreachable', isRefused: true };

/** A backend whose probe always succeeds, with a clock that the test moves. */
function truthless() {
  const clock = { nowMs: 0 };
  const told: string[] = [];
  const backend = new PoolBackend({
    proxied: { url: 'http://b' } as ProxiedBackend,
    probe: {
      ...{ isReady: true, reason: null, load: null },
      onAnswered: () => told.push('answered'),
      onRefused: () => told.push('refused'),
    },
    limit: new LearntLimit(),
    breaker: createBreaker({ initialBackoffMs: 1_000, maxBackoffMs: 30_000, probeTimeoutMs: 300 }),
    now: () => clock.nowMs,
  });
  const call = (end: ExchangeEnd, id = 'r') => {
    const sending = backend.begin({ requestId: id, cost: 1, band: BAND.standard });
    backend.end(sending, { end, work: 0, pauseMs: 0 });
    return sending;
  };
  /** Breaks requests of several clients for 10 s. */
  const breakRequests = (): void => {
    for (const atMs of [0, 2_500, 5_000, 7_500, 10_000]) {
      clock.nowMs = atMs;
      call(LOST, `r-${atMs}`);
    }
  };
  return { backend, clock, told, call, breakRequests };
}

it('gives up a backend that breaks every request for 10 s, whatever its probe says', () => {
  const { backend, clock, breakRequests } = truthless();
  breakRequests();
  expect([backend.isReady, backend.condition.reason]).toEqual([
    false,
    'the circuit breaker is open',
  ]);
  clock.nowMs += 1_000;
  expect(backend.isReady).toBe(true);
  const sending = backend.begin({ requestId: 'test', cost: 1, band: BAND.standard });
  // One request tests it; the others wait for its end.
  expect([sending.isProbe, backend.isReady]).toEqual([true, false]);
  backend.end(sending, { end: END, work: 1, pauseMs: 0 });
  expect([backend.isReady, backend.condition.reason]).toEqual([true, null]);
});

it('lets another request test a backend if the client of the first one hangs up', () => {
  const { backend, clock, call, breakRequests } = truthless();
  breakRequests();
  clock.nowMs += 1_000;
  const gone: ExchangeEnd = { ...LOST, outcome: 'client_closed' };
  expect(call(gone).isProbe).toBe(true);
  expect(backend.isReady).toBe(true);
  expect(call(END).isProbe).toBe(true);
  expect(backend.isReady).toBe(true);
});

it('keeps what it learnt of a backend that refuses connections, and reports that at once', () => {
  const { backend, told, call } = truthless();
  for (let i = 0; i < 10; i++) call(REFUSED);
  expect([backend.limit.limit, backend.limit.isSlowStart]).toEqual([8, true]);
  expect(told).toEqual(Array.from({ length: 10 }, () => 'refused'));
  call({ ...REFUSED, isRefused: false });
  expect(backend.limit.limit).toBe(5);
});
