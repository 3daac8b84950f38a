import fc from 'fast-check';
import { ExpiryWheel, TICK_MS, type Expiring } from '../../../../core/dispatch/queue/expiry-wheel';

class Timer<N> implements Expiring<Timer<N>> {
  readonly name: N;
  dueTick = -1;
  previousDue: Timer<N> | null = null;
  nextDue: Timer<N> | null = null;

  constructor(name: N) {
    this.name = name;
  }
}

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
        const wheel = new ExpiryWheel<Timer<number>>(nowMs);
        const timers = Array.from({ length: 10 }, (_, i) => new Timer(i));
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
            expect(due.get(fired.name)).toBeLessThanOrEqual(nowMs);
            due.delete(fired.name);
          }
          expect([...due.values()].filter((dueMs) => dueMs <= nowMs - TICK_MS)).toEqual([]);
        }
      }),
    );
  });

  it('goes on where it was when its timers are taken one at a time', () => {
    const wheel = new ExpiryWheel<Timer<string>>(0);
    const timers = ['a', 'b', 'c'].map((name) => new Timer(name));
    for (const timer of timers) wheel.schedule(timer, 100);
    expect(wheel.popDue(100)?.name).toBe('a');
    wheel.cancel(timers[1]!);
    wheel.schedule(timers[0]!, 100);
    expect([wheel.popDue(100)?.name, wheel.popDue(100)]).toEqual(['c', null]);
    expect(wheel.popDue(200)?.name).toBe('a');
  });
});
