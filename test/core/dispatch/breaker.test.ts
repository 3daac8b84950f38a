import fc from 'fast-check';
import {
  createBreaker,
  type Breaker,
  type BreakerFailureKind,
} from '../../../core/dispatch/breaker';

const options = { initialBackoffMs: 1_000, maxBackoffMs: 5_000, probeTimeoutMs: 60_000 };

function failing(
  breaker: Breaker,
  failures: readonly (readonly [lineId: string, nowMs: number, kind?: BreakerFailureKind])[],
): Breaker {
  for (const [lineId, nowMs, kind] of failures) {
    breaker.onFailure({ lineId, nowMs, kind: kind ?? 503 });
  }
  return breaker;
}

/** Open since 10 s, first probe at 11 s. */
function opened(): Breaker {
  return failing(createBreaker(options), [
    ['a', 0],
    ['b', 1_000],
    ['c', 2_000],
    ['a', 3_000],
    ['b', 10_000],
  ]);
}

describe('a closed circuit breaker', () => {
  it.each<[string, readonly (readonly [string, number, BreakerFailureKind?])[], string]>([
    [
      '5 failures, 10 s, 3 lines',
      [
        ['a', 0],
        ['b', 1],
        ['c', 2],
        ['a', 3],
        ['a', 10_000],
      ],
      'open',
    ],
    [
      'only 4 failures',
      [
        ['a', 0],
        ['b', 1],
        ['c', 2],
        ['d', 10_000],
      ],
      'closed',
    ],
    [
      'only 9.999 s',
      [
        ['a', 0],
        ['b', 1],
        ['c', 2],
        ['d', 3],
        ['e', 9_999],
      ],
      'closed',
    ],
    [
      'only 2 lines',
      [
        ['a', 0],
        ['b', 1],
        ['a', 2],
        ['b', 3],
        ['a', 60_000],
      ],
      'closed',
    ],
    [
      'one line that never connects',
      [0, 1, 2, 3, 10_000].map((at) => ['a', at, 'connect'] as const),
      'open',
    ],
    [
      'one line, connections that break',
      [0, 1, 2, 3, 10_000].map((at) => ['a', at, 'connection'] as const),
      'closed',
    ],
    [
      'one line, 4 of 6 never connected',
      [['a', 0], ['a', 1], ...[2, 3, 4, 10_000].map((at) => ['a', at, 'connect'] as const)],
      'closed',
    ],
  ])('opens only if it should: %s', (_, failures, state) => {
    expect(failing(createBreaker(options), failures).state).toBe(state);
  });

  it('never opens because of failures before a success', () => {
    const breaker = failing(createBreaker(options), [
      ['a', 0],
      ['b', 1],
      ['c', 2],
      ['d', 3],
    ]);
    expect(breaker.failingSinceMs).toBe(0);
    breaker.onSuccess(0);
    expect(breaker.failingSinceMs).toBeNull();
    failing(breaker, [['e', 20_000]]);
    expect(breaker.state).toBe('closed');
    expect(breaker.admit(20_000)).toBe('go');
    expect(breaker.failingSinceMs).toBe(20_000);
  });
});

describe('a gateway', () => {
  it.each<[string, Parameters<typeof failing>[1], boolean]>([
    ['nothing failed', [], false],
    ['one connection could not be made', [['a', 0, 'connect']], true],
    [
      '5 failures of 3 lines in a short time',
      [
        ['a', 0],
        ['b', 1],
        ['c', 2],
        ['a', 3],
        ['a', 4],
      ],
      true,
    ],
    [
      '5 failures of 2 lines',
      [
        ['a', 0],
        ['b', 1],
        ['a', 2],
        ['b', 3],
        ['a', 4],
      ],
      false,
    ],
  ])('is suspect, or not, when %s', (_, failures, suspect) => {
    const breaker = failing(createBreaker(options), failures);
    expect(breaker.suspect).toBe(suspect);
    breaker.onSuccess(0);
    expect(breaker.suspect).toBe(false);
  });
});

describe('an open circuit breaker', () => {
  it('admits one probe at a time, the first one after the initial backoff', () => {
    const breaker = opened();
    expect(breaker.retryAtMs).toBe(11_000);
    expect(breaker.admit(10_999)).toBe('wait');
    expect(breaker.admit(11_000)).toBe('probe');
    expect(breaker.admit(11_001)).toBe('wait');
    expect(breaker.admit(30_000)).toBe('wait');
  });

  it('doubles the pause between probes up to its maximum', () => {
    const breaker = opened();
    const pauses: number[] = [];
    let nowMs = 11_000;
    for (let i = 0; i < 5; i++) {
      expect(breaker.admit(nowMs)).toBe('probe');
      breaker.onFailure({ lineId: 'p', kind: 'connect', nowMs, probe: true });
      pauses.push(breaker.retryAtMs - nowMs);
      nowMs = breaker.retryAtMs;
    }
    expect(pauses).toEqual([2_000, 4_000, 5_000, 5_000, 5_000]);
  });

  it('does not mistake the failure of an older request for that of the probe', () => {
    const breaker = opened();
    expect(breaker.admit(11_000)).toBe('probe');
    breaker.onFailure({ lineId: 'old', kind: 503, nowMs: 11_500 });
    expect(breaker.admit(20_000)).toBe('wait');
  });

  it('closes after any success and forgets the failures', () => {
    const breaker = opened();
    breaker.admit(11_000);
    breaker.onSuccess(0);
    expect([breaker.state, breaker.retryAtMs, breaker.admit(11_001)]).toEqual(['closed', 0, 'go']);
    failing(breaker, [
      ['a', 12_000],
      ['b', 12_001],
      ['c', 12_002],
      ['d', 12_003],
    ]);
    expect(breaker.state).toBe('closed');
  });

  it('admits another probe when one is lost or never reported', () => {
    const lost = opened();
    lost.admit(11_000);
    lost.onProbeLost(12_000);
    expect(lost.admit(12_000)).toBe('probe');
    const silent = opened();
    silent.admit(11_000);
    expect(silent.retryAtMs).toBe(71_000);
    expect(silent.admit(71_000)).toBe('wait');
    expect(silent.admit(silent.retryAtMs)).toBe('probe');
  });
});

describe('the listener of a circuit breaker', () => {
  it('is called once when it opens and once when it closes', () => {
    const heard: string[] = [];
    const watched = createBreaker({ ...options, onChange: (state) => heard.push(state) });
    watched.onSuccess(0);
    const failures = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    failing(
      watched,
      failures.map((line, index) => [line, index * 4_000]),
    );
    watched.onSuccess(30_000);
    watched.onSuccess(31_000);
    expect(heard).toEqual(['open', 'closed']);
  });
});

describe('a circuit breaker with any history', () => {
  it('never has two probes in flight and never waits forever', () => {
    const step = fc.record({
      advanceMs: fc.integer({ min: 0, max: 20_000 }),
      line: fc.constantFrom('a', 'b', 'c', 'd'),
      end: fc.constantFrom('success', 'failure', 'lost', 'silence'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const breaker = createBreaker(options);
        let nowMs = 0;
        let probeSinceMs: number | null = null;
        for (const { advanceMs, line, end } of steps) {
          nowMs += advanceMs;
          const admission = breaker.admit(nowMs);
          expect(admission === 'go').toBe(breaker.state === 'closed');
          if (admission === 'wait') expect(breaker.retryAtMs - nowMs).toBeLessThanOrEqual(60_000);
          if (admission === 'probe') {
            const previous: number | null = probeSinceMs;
            if (previous !== null) expect(nowMs - previous).toBeGreaterThanOrEqual(60_000);
            probeSinceMs = nowMs;
          }
          if (admission === 'wait' || end === 'silence') continue;
          if (end === 'success') breaker.onSuccess(0);
          if (end === 'lost') breaker.onProbeLost(nowMs);
          const probe = admission === 'probe';
          if (end === 'failure') breaker.onFailure({ lineId: line, kind: 503, nowMs, probe });
          probeSinceMs = null;
        }
      }),
    );
  });
});
