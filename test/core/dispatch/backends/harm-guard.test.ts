import fc from 'fast-check';
import { HarmGuard } from '../../../../core/dispatch/backends/harm-guard';

const BOUNDS = { limit: 100, ceiling: 90, floor: 5, inFlight: 90 };

/** A guard that sees streams with the given times for a while; returns the cap of each second. */
function watch(
  guard: HarmGuard,
  fromSec: number,
  times: readonly number[],
  promptTokens = 100,
): number[] {
  return times.map((ttfbMs, i) => {
    const nowMs = (fromSec + i) * 1_000;
    for (let stream = 0; stream < 20; stream++) guard.onFirstByte({ promptTokens, ttfbMs, nowMs });
    return guard.cap(BOUNDS, nowMs);
  });
}

const constant = (ttfbMs: number, seconds: number) => new Array<number>(seconds).fill(ttfbMs);

describe('the cap for batch requests', () => {
  it('is the ceiling while no user streams', () => {
    const guard = new HarmGuard();
    expect(guard.cap(BOUNDS, 0)).toBe(90);
    watch(guard, 0, constant(100, 61));
    expect(watch(guard, 61, constant(230, 3)).at(-1)).toBeLessThan(90);
    expect(guard.cap(BOUNDS, 63_000 + 9_999)).toBeLessThan(90);
    expect(guard.cap(BOUNDS, 63_000 + 10_000)).toBe(90);
  });

  it('falls by 30 % a second while users wait twice as long as in their best minute', () => {
    const guard = new HarmGuard();
    expect(watch(guard, 0, constant(100, 61)).at(-1)).toBe(90);
    const caps = watch(guard, 61, constant(201, 12));
    expect(caps.slice(0, 2)).toEqual([expect.closeTo(63), expect.closeTo(44.1)]);
    expect(caps.at(-1)).toBe(5);
  });

  it('grows by a tenth of the limit while users do not notice, and stays between', () => {
    const guard = new HarmGuard();
    watch(guard, 0, constant(100, 61));
    watch(guard, 61, constant(230, 9));
    const kept = watch(guard, 72, constant(190, 3));
    expect(new Set(kept).size).toBe(1);
    const grown = watch(guard, 75, constant(164, 5));
    expect(grown[4]! - kept[2]!).toBeCloseTo(50);
  });

  it('changes at most once a second', () => {
    const guard = new HarmGuard();
    watch(guard, 0, constant(100, 61));
    watch(guard, 61, constant(230, 1));
    const cap = guard.cap(BOUNDS, 61_500);
    expect(guard.cap(BOUNDS, 61_999)).toBe(cap);
    for (let i = 0; i < 20; i++)
      guard.onFirstByte({ promptTokens: 100, ttfbMs: 230, nowMs: 61_999 });
    expect(guard.cap(BOUNDS, 61_999)).toBe(cap);
    expect(guard.cap(BOUNDS, 62_000)).toBeLessThan(cap);
  });

  it('compares prompts with prompts of their size', () => {
    const guard = new HarmGuard();
    for (let second = 0; second < 61; second++) {
      watch(guard, second, [100], 100);
      watch(guard, second, [3_000], 30_000);
    }
    // Users send more long prompts: slower answers, but not slower than before.
    expect(watch(guard, 61, constant(3_000, 5), 30_000).at(-1)).toBe(90);
    // One class that suffers is enough.
    watch(guard, 66, constant(100, 1), 100);
    expect(watch(guard, 66, constant(6_300, 3), 30_000).at(-1)).toBeLessThan(90);
  });

  it('judges a cut only by streams that were sent after it', () => {
    const guard = new HarmGuard();
    watch(guard, 0, constant(100, 61));
    const cut = watch(guard, 61, constant(230, 1)).at(-1);
    // Slow, but on their way since before the cut.
    const nowMs = 62_500;
    for (let i = 0; i < 20; i++) guard.onFirstByte({ promptTokens: 100, ttfbMs: 1_501, nowMs });
    expect(guard.cap(BOUNDS, nowMs)).toBe(cut);
  });

  it('stays if batches do not use half of it, and is restored if users wait without batches', () => {
    const guard = new HarmGuard();
    const slow = (second: number, inFlight: number, ttfbMs = 230) => {
      const nowMs = second * 1_000;
      for (let i = 0; i < 20; i++) guard.onFirstByte({ promptTokens: 100, ttfbMs, nowMs });
      return guard.cap({ ...BOUNDS, inFlight }, nowMs);
    };
    for (let second = 0; second < 61; second++) slow(second, 90, 100);
    expect(slow(61, 90)).toBeCloseTo(63);
    expect([slow(63, 30), slow(65, 30)]).toEqual([expect.closeTo(63), expect.closeTo(63)]);
    expect(slow(67, 22)).toBe(90);
  });

  it('reports a queue in the engines if batches make users wait far longer', () => {
    const guard = new HarmGuard();
    const isQueueing = (second: number, ttfbMs: number, inFlight = 90) => {
      const nowMs = second * 1_000;
      for (let i = 0; i < 20; i++) guard.onFirstByte({ promptTokens: 100, ttfbMs, nowMs });
      guard.cap({ ...BOUNDS, inFlight }, nowMs);
      return guard.isEngineQueueing;
    };
    for (let second = 0; second < 61; second++) isQueueing(second, 100);
    expect(isQueueing(61, 240)).toBe(false);
    expect(isQueueing(63, 260)).toBe(true);
    // With few lines in flight, users wait for each other.
    expect(isQueueing(65, 260, 10)).toBe(false);
    expect(isQueueing(67, 260)).toBe(true);
    guard.cap(BOUNDS, 67_000 + 10_000);
    expect(guard.isEngineQueueing).toBe(false);
  });

  it('forgets a base after ten minutes', () => {
    const guard = new HarmGuard();
    watch(guard, 0, constant(100, 60));
    expect(watch(guard, 60, constant(230, 500)).at(-1)).toBe(5);
    expect(watch(guard, 560, constant(230, 200)).at(-1)).toBe(90);
  });

  it('stays between floor and ceiling for any streams', () => {
    const step = fc.record({
      waitMs: fc.nat(15_000),
      ttfbMs: fc.double({ min: 0, max: 1e5, noNaN: true }),
      promptTokens: fc.nat(100_000),
      streams: fc.nat(20),
      ceiling: fc.integer({ min: 10, max: 90 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const guard = new HarmGuard();
        let nowMs = 0;
        for (const { waitMs, streams, ceiling, ...stream } of steps) {
          nowMs += waitMs;
          for (let i = 0; i < streams; i++) guard.onFirstByte({ ...stream, nowMs });
          const cap = guard.cap({ ...BOUNDS, ceiling }, nowMs);
          expect(cap).toBeGreaterThanOrEqual(5);
          expect(cap).toBeLessThanOrEqual(ceiling);
        }
      }),
    );
  });
});
