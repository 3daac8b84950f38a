import fc from 'fast-check';
import { ExpiryWheel, TICK_MS, WheelTimer } from '../../../../core/dispatch/queue/expiry-wheel';

/** Waits below a tick, of many ticks, and of several turns of the wheel. */
const WAITS = [0, 1, 99, 100, 101, 5_000, 102_400, 102_500, 500_000];

describe('an expiry wheel', () => {
  it('fires each timer within a tick after its time, and never before it', () => {
    const step = fc.record({
      do: fc.constantFrom('schedule', 'schedule', 'cancel', 'advance'),
      pick: fc.nat(9),
      ms: fc.constantFrom(...WAITS),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
        let nowMs = 1_234_567;
        const wheel = new ExpiryWheel<number>(nowMs);
        const timers = Array.from({ length: 10 }, (_, i) => new WheelTimer(i));
        const due = new Map<number, number>();
        for (const { do: what, pick, ms } of steps) {
          if (what === 'schedule') {
            wheel.schedule(timers[pick]!, nowMs + ms);
            due.set(pick, nowMs + ms);
          }
          if (what === 'cancel') {
            wheel.cancel(timers[pick]!);
            due.delete(pick);
          }
          if (what === 'advance') nowMs += ms;
          for (let fired = wheel.popDue(nowMs); fired !== null; fired = wheel.popDue(nowMs)) {
            expect(due.get(fired.owner)).toBeLessThanOrEqual(nowMs);
            due.delete(fired.owner);
          }
          expect([...due.values()].filter((dueMs) => dueMs <= nowMs - TICK_MS)).toEqual([]);
        }
      }),
    );
  });

  it('goes on where it was when its timers are taken one at a time', () => {
    const wheel = new ExpiryWheel<string>(0);
    const timers = ['a', 'b', 'c'].map((name) => new WheelTimer(name));
    for (const timer of timers) wheel.schedule(timer, 100);
    expect(wheel.popDue(100)?.owner).toBe('a');
    wheel.cancel(timers[1]!);
    wheel.schedule(timers[0]!, 100);
    expect([wheel.popDue(100)?.owner, wheel.popDue(100)]).toEqual(['c', null]);
    expect(wheel.popDue(200)?.owner).toBe('a');
  });
});
