import fc from 'fast-check';
import { gatewayHealth, loadSignal, type TryOutcome } from '../../../core/dispatch/outcome';
import { costOf, nextTry } from '../../../core/dispatch/retry';

const answer = (status: number, over: Partial<TryOutcome & { kind: 'answer' }> = {}): TryOutcome =>
  ({ kind: 'answer', status, retryAfter: null, droppedReason: null, ...over }) as const;
const gateway = { max_retries: 4, initial_backoff: 100, max_backoff: 60_000 };

describe('the load signal of a reply', () => {
  it.each([
    [answer(200), 'success'],
    [answer(204), 'success'],
    [answer(307), 'none'],
    [answer(400), 'none'],
    [answer(429), 'overload'],
    [answer(500), 'none'],
    [answer(503), 'none'],
    [answer(503, { retryAfter: 'soon' }), 'none'],
    [answer(503, { retryAfter: '1' }), 'overload'],
    [answer(429, { droppedReason: 'rejected-ttl-expired' }), 'none'],
    [answer(429, { droppedReason: 'rejected-saturated' }), 'overload'],
    [answer(503, { dropped: 'too_many_flows' }), 'overload'],
    [answer(503, { dropped: 'insufficient_flow_capacity' }), 'overload'],
    [answer(503, { dropped: 'queue_bytes_exceeded' }), 'overload'],
    [answer(503, { dropped: 'not_critical' }), 'overload'],
    [answer(503, { dropped: 'queue_ttl_expired', retryAfter: '1' }), 'none'],
    [answer(429, { dropped: 'evicted', retryAfter: '1' }), 'none'],
    [{ kind: 'failure', reason: 'connect' } as const, 'none'],
    [{ kind: 'failure', reason: 'timeout' } as const, 'none'],
  ])('of %j is %s', (outcome, expected) => {
    expect(loadSignal(outcome)).toBe(expected);
  });
});

describe('the tries of a line', () => {
  it('do not include drops, which the circuit breaker ignores too', () => {
    const dropped = answer(503, { dropped: 'evicted', retryAfter: '2' });
    expect(costOf({ outcome: dropped, limit: 1, refusals: 99 })).toBe('nothing');
    expect(gatewayHealth(dropped)).toBe('unknown');
    // Not even if the other header reports an expired deadline.
    const expired = answer(503, { dropped: 'deadline', droppedReason: 'rejected-ttl-expired' });
    expect(costOf({ outcome: expired, limit: null, refusals: 0 })).toBe('nothing');
    const input = { attempt: 5, counted: false, nowMs: 0, deadlineMs: 9e9, random: 0, gateway };
    expect(nextTry({ ...input, outcome: dropped })).toEqual({ kind: 'retry', atMs: 2_000 });
  });

  it('do not include a drop, whatever else its answer says', () => {
    const drop = fc.record({
      kind: fc.constant('answer' as const),
      status: fc.integer({ min: 300, max: 599 }),
      retryAfter: fc.constantFrom(null, '1', 'soon'),
      droppedReason: fc.constantFrom(null, 'rejected-ttl-expired', 'rejected-saturated'),
      dropped: fc.constantFrom('too_many_flows', 'queue_ttl_expired', 'evicted', 'unknown'),
    });
    const limit = fc.constantFrom(null, 1, 9);
    fc.assert(
      fc.property(drop, limit, fc.nat(40), fc.nat(10_000), (outcome, at, refusals, leftMs) => {
        expect(costOf({ outcome, limit: at, refusals })).toBe('nothing');
        expect(gatewayHealth(outcome)).toBe('unknown');
        const clock = { nowMs: 1_000, deadlineMs: 1_000 + leftMs, random: 0.5, gateway };
        const next = nextTry({ outcome, attempt: 99, refusals, counted: false, ...clock });
        expect(next.kind).not.toBe('final');
        if (next.kind === 'retry') expect(next.atMs).toBeLessThan(clock.deadlineMs);
      }),
    );
  });

  it('include a 429 only at a limit of 1, at a fixed limit, or after twenty refusals', () => {
    const cost = (limit: number | null, refusals: number) =>
      costOf({ outcome: answer(429), limit, refusals });
    expect([cost(2, 0), cost(2, 19), cost(2, 20)]).toEqual(['refusal', 'refusal', 'try']);
    expect([cost(1, 0), cost(null, 0)]).toEqual(['try', 'try']);
    expect(costOf({ outcome: answer(503, { retryAfter: '1' }), limit: 9, refusals: 0 })).toBe(
      'try',
    );
  });

  it('are at most max_retries + 1 with any replies', () => {
    const event = fc.record({
      outcome: fc.constantFrom(
        answer(429),
        answer(429),
        answer(500),
        answer(503, { retryAfter: '1' }),
        answer(503, { dropped: 'evicted' }),
        answer(429, { dropped: 'too_many_flows' }),
      ),
      limit: fc.constantFrom(null, 1, 2, 16),
      random: fc.double({ min: 0, max: 0.99, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80, size: 'max' }), (events) => {
        let [tries, refusals, nowMs] = [0, 0, 0];
        for (const { outcome, limit, random } of events) {
          const before = tries;
          const cost = costOf({ outcome, limit, refusals });
          if (cost === 'try') tries++;
          if (cost === 'refusal') refusals++;
          const is429 = outcome.kind === 'answer' && outcome.status === 429;
          const isFree = outcome.kind === 'answer' && outcome.dropped !== undefined;
          if (isFree || (is429 && limit !== null && limit > 1 && refusals < 20)) {
            expect(tries).toBe(before);
          }
          const next = nextTry({
            ...{ outcome, attempt: tries, refusals, counted: cost === 'try' },
            ...{ nowMs, deadlineMs: Number.MAX_SAFE_INTEGER, random, gateway },
          });
          expect(tries).toBeLessThanOrEqual(gateway.max_retries + 1);
          expect(refusals).toBeLessThanOrEqual(20);
          if (next.kind !== 'retry') return void expect(tries).toBe(gateway.max_retries + 1);
          expect(next.atMs).toBeGreaterThanOrEqual(nowMs);
          nowMs = next.atMs;
        }
      }),
    );
  });

  it('are further apart after each 429, counted or not', () => {
    const pause = (attempt: number, refusals: number) => {
      const input = { attempt, refusals, counted: false, nowMs: 0, deadlineMs: 9e9, random: 0.5 };
      return nextTry({ ...input, outcome: answer(429), gateway });
    };
    expect(pause(0, 1)).toEqual({ kind: 'retry', atMs: 50 });
    expect(pause(0, 3)).toEqual({ kind: 'retry', atMs: 200 });
    expect(pause(1, 3)).toEqual({ kind: 'retry', atMs: 400 });
  });
});
