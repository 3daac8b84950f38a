import fc from 'fast-check';
import { AdaptiveLimit, type SendMark } from '../../../core/dispatch/adaptive-limit';

const reply = (limit: AdaptiveLimit, signal: 'success' | 'overload' | 'none', mark: SendMark) =>
  limit.onReply({ signal, mark, pauseMs: 0, nowMs: 0 });

describe('the adaptive limit', () => {
  it('stays between 1 and its maximum, grows by one and shrinks by half', () => {
    const event = fc.record({
      signal: fc.constantFrom('success', 'success', 'success', 'overload', 'none'),
      /** Picks the request in flight that is answered. */
      pick: fc.nat(),
      sends: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.array(event, { maxLength: 300, size: 'max' }),
        (max, events) => {
          const limit = new AdaptiveLimit(max);
          const open: { mark: SendMark; sentAfterCut: number }[] = [];
          let cuts = 0;
          for (const { signal, pick, sends } of events) {
            for (let i = 0; i < sends; i++) open.push({ mark: limit.mark, sentAfterCut: cuts });
            if (open.length === 0) continue;
            const [request] = open.splice(pick % open.length, 1);
            const before = limit.limit;
            reply(limit, signal, request!.mark);
            const after = limit.limit;
            expect(after).toBeGreaterThanOrEqual(1);
            expect(after).toBeLessThanOrEqual(max);
            const isCut = signal === 'overload' && request!.sentAfterCut === cuts;
            if (isCut) cuts++;
            if (isCut) expect(after).toBe(Math.max(1, Math.floor(before / 2)));
            else if (signal === 'success') expect([before, before + 1]).toContain(after);
            else expect(after).toBe(before);
          }
        },
      ),
    );
  });

  it('recovers quickly to the limit before the last cut, then grows once per limit successes', () => {
    const limit = new AdaptiveLimit(8);
    const seen = (successes: number) =>
      Array.from({ length: successes }, () => {
        reply(limit, 'success', limit.mark);
        return limit.limit;
      });
    reply(limit, 'overload', limit.mark);
    expect(limit.limit).toBe(4);
    expect(seen(10)).toEqual([5, 6, 7, 7, 7, 7, 7, 7, 7, 8]);
    reply(limit, 'overload', limit.mark);
    expect(seen(5)).toEqual([5, 6, 7, 7, 7]);
    // A cut resets the count of successes.
    reply(limit, 'overload', limit.mark);
    expect(seen(10)).toEqual([4, 5, 6, 6, 6, 6, 6, 6, 7, 7]);
  });

  it('pauses for the longest requested time, five minutes at most', () => {
    const limit = new AdaptiveLimit(2);
    const mark = limit.mark;
    const pause = (pauseMs: number, nowMs: number) =>
      limit.onReply({ signal: 'overload', mark, pauseMs, nowMs });
    pause(5_000, 1_000);
    pause(2_000, 2_000);
    expect(limit.pausedUntilMs).toBe(6_000);
    pause(3_600_000, 3_000);
    expect(limit.pausedUntilMs).toBe(303_000);
    limit.onReply({ signal: 'success', mark, pauseMs: 900_000, nowMs: 4_000 });
    expect(limit.pausedUntilMs).toBe(303_000);
  });

  it.each([
    [1, 0.9],
    [2, 0.9],
    [5, 0.9],
    [50, 0.9],
  ])('keeps a server with %d places busy for at least %d of the time', (slots, least) => {
    expect(utilization({ slots, max: 4 * slots, jitter: 0 })).toBeGreaterThanOrEqual(least);
    expect(utilization({ slots, max: 4 * slots, jitter: 0.8 })).toBeGreaterThanOrEqual(least);
  });
});

/** The used share of a server's time; an answer takes about 1 unit of virtual time, a 429 takes none. */
function utilization({ slots, max, jitter }: { slots: number; max: number; jitter: number }) {
  const limit = new AdaptiveLimit(max);
  const open: { endsAt: number; mark: SendMark }[] = [];
  let now = 0;
  let busy = 0;
  let random = 1;
  for (let answered = 0; answered < 200 * slots; answered++) {
    while (open.length < limit.limit) {
      const mark = limit.mark;
      if (open.length >= slots) {
        reply(limit, 'overload', mark);
        continue;
      }
      random = (random * 48_271) % 2_147_483_647;
      const took = 1 + jitter * (random / 2_147_483_647 - 0.5);
      busy += took;
      open.push({ endsAt: now + took, mark });
    }
    open.sort((a, b) => a.endsAt - b.endsAt);
    const done = open.shift()!;
    now = done.endsAt;
    reply(limit, 'success', done.mark);
  }
  return busy / (slots * now);
}
