import fc from 'fast-check';
import { backoffMs, isRetryable, nextTry } from '../../../core/dispatch/retry';
import { retryAfterMs } from '../../../core/dispatch/retry-after';
import { gatewayHealth, type TryOutcome } from '../../../core/dispatch/outcome';

const answer = (status: number, droppedReason: string | null = null): TryOutcome => ({
  kind: 'answer',
  status,
  retryAfter: null,
  droppedReason,
});
const failure = (reason: 'connect' | 'connection' | 'timeout' | 'too_large' | 'aborted') =>
  ({ kind: 'failure', reason }) as const;
const gateway = { max_retries: 3, initial_backoff: 1_000, max_backoff: 60_000 };

describe('the retry decision', () => {
  it.each([
    [answer(200), false],
    [answer(307), false],
    [answer(400), false],
    [answer(404), false],
    [answer(408), true],
    [answer(409), false],
    [answer(425), true],
    [answer(429), true],
    [answer(500), true],
    [answer(501), true],
    [answer(503), true],
    [answer(599), true],
    [answer(429, 'rejected-ttl-expired'), true],
    [answer(503, 'rejected-ttl-expired'), true],
    [answer(503, 'rejected-saturated'), true],
    [answer(500, 'rejected-ttl-expired'), true],
    [failure('connect'), true],
    [failure('connection'), true],
    [failure('timeout'), true],
    [failure('too_large'), false],
    [failure('aborted'), false],
  ])('of %j is %s', (outcome, expected) => {
    expect(isRetryable(outcome, { isPastDeadline: false })).toBe(expected);
  });
});

describe('the health of a gateway after a try', () => {
  it.each([
    [answer(200), 'alive'],
    [answer(400), 'alive'],
    [answer(429), 'alive'],
    [answer(500), 'alive'],
    [answer(502), 502],
    [answer(503), 503],
    [answer(504), 504],
    [answer(503, 'rejected-ttl-expired'), 'alive'],
    [failure('connect'), 'connect'],
    [failure('connection'), 'connection'],
    [failure('too_large'), 'alive'],
    [failure('timeout'), 'unknown'],
    [failure('aborted'), 'unknown'],
  ])('of %j is %s', (outcome, expected) => {
    expect(gatewayHealth(outcome)).toBe(expected);
  });
});

describe('the pause before the next try', () => {
  it('doubles up to its maximum, with full jitter', () => {
    const at = (attempt: number, random: number) =>
      backoffMs({ attempt, retryAfter: null, nowMs: 0, random, gateway });
    expect([1, 2, 3, 4, 7, 50, 5_000].map((attempt) => at(attempt, 0.5))).toEqual([
      500, 1_000, 2_000, 4_000, 30_000, 30_000, 30_000,
    ]);
    expect(at(3, 0)).toBe(0);
  });

  it('stays within its bounds for any input', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.option(fc.string()),
        (attempt, random, retryAfter) => {
          const pause = backoffMs({ attempt, retryAfter, nowMs: 1e12, random, gateway });
          expect(pause).toBeGreaterThanOrEqual(0);
          expect(pause).toBeLessThanOrEqual(300_000);
        },
      ),
    );
  });

  it('is never shorter than Retry-After, which counts for at most 5 minutes', () => {
    const pause = (retryAfter: string, random: number) =>
      backoffMs({ attempt: 1, retryAfter, nowMs: 0, random, gateway });
    expect(pause('20', 0)).toBe(20_000);
    expect(pause('3600', 0)).toBe(300_000);
    expect(pause('0', 0.9)).toBe(900);
  });
});

describe('Retry-After', () => {
  const nowMs = Date.parse('2026-01-05T10:00:00Z');
  it.each([
    ['7', 7_000],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['Mon, 05 Jan 2026 10:00:30 GMT', 30_000],
    ['Monday, 05-Jan-26 10:00:30 GMT', 30_000],
    ['Mon, 05 Jan 2026 09:00:00 GMT', 0],
    ['Mon, 05 Jan 2026 23:00:00 GMT', 300_000],
    ['-3', null],
    ['soon', null],
    ['2026-01-05', null],
    ['', null],
    [null, null],
  ])('%j is %s ms', (value, expected) => {
    expect(retryAfterMs(value, nowMs)).toBe(expected);
  });
});

describe('the next try', () => {
  const input = { nowMs: 1_000, deadlineMs: 1e9, random: 0.5, gateway };

  it('is made max_retries times and not more often', () => {
    const kinds = [1, 2, 3, 4].map(
      (attempt) => nextTry({ ...input, outcome: answer(500), attempt }).kind,
    );
    expect(kinds).toEqual(['retry', 'retry', 'retry', 'final']);
    const none = { ...gateway, max_retries: 0 };
    expect(nextTry({ ...input, outcome: answer(500), attempt: 1, gateway: none }).kind).toBe(
      'final',
    );
  });

  it('never starts at or after the deadline', () => {
    const at = (deadlineMs: number) =>
      nextTry({ ...input, outcome: failure('timeout'), attempt: 1, deadlineMs });
    expect(at(1_501)).toEqual({ kind: 'retry', atMs: 1_500 });
    expect(at(1_500)).toEqual({ kind: 'expired' });
  });

  it('is not made after a final answer', () => {
    expect(nextTry({ ...input, outcome: answer(400), attempt: 1 })).toEqual({ kind: 'final' });
  });
});
