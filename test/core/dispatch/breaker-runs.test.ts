import { createBreaker } from '../../../core/dispatch/breaker';

const options = { initialBackoffMs: 1_000, maxBackoffMs: 5_000, probeTimeoutMs: 60_000 };
const fail = (lineId: string, nowMs: number) => ({ lineId, nowMs, kind: 503 as const });

describe('a circuit breaker after a success', () => {
  it('ignores the lines that failed before it', () => {
    const breaker = createBreaker(options);
    for (const [i, line] of ['a', 'b', 'c', 'd'].entries()) breaker.onFailure(fail(line, i));
    breaker.onSuccess(10);
    // One line that breaks its connection again and again.
    for (let i = 0; i < 20; i++) breaker.onFailure(fail('poison', 1_000 + 1_000 * i));
    expect([breaker.state, breaker.suspect]).toEqual(['closed', false]);
  });

  it('keeps the newest send time if an older success is reported later', () => {
    const breaker = createBreaker(options);
    expect(breaker.lastSuccessSentMs).toBeNull();
    breaker.onSuccess(500);
    breaker.onSuccess(200);
    expect(breaker.lastSuccessSentMs).toBe(500);
    breaker.onSuccess(700);
    expect(breaker.lastSuccessSentMs).toBe(700);
  });
});

it('does not probe earlier if a probe is reported lost after it timed out', () => {
  const breaker = createBreaker(options);
  for (const [i, line] of ['a', 'b', 'c', 'd', 'e'].entries()) {
    breaker.onFailure(fail(line, i * 2_500));
  }
  expect(breaker.admit(11_000)).toBe('probe');
  // The probe has timed out, which doubles the pause.
  expect(breaker.admit(71_000)).toBe('wait');
  const { retryAtMs } = breaker;
  expect(retryAtMs).toBe(73_000);
  breaker.onProbeLost(71_001);
  expect([breaker.retryAtMs, breaker.admit(72_999)]).toEqual([retryAtMs, 'wait']);
});
