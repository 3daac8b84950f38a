import { ThroughputCurve } from '../../../../core/dispatch/backends/throughput-curve';

/** Measures requests at a load, on a backend that computes up to `knee` of them at a time. */
function measure(curve: ThroughputCurve, load: number, { knee = 16, count = 40, atMs = 0 } = {}) {
  const tookMs = 1_000 * Math.max(1, load / knee);
  for (let i = 0; i < count; i++) curve.add({ load, tookMs, work: 100, nowMs: atMs });
}

describe('the throughput of a backend by its load', () => {
  it('has its best load where more does not bring more', () => {
    const curve = new ThroughputCurve();
    expect(curve.best(0)).toBeNull();
    for (const load of [4, 8, 12, 16, 20, 32]) measure(curve, load);
    expect(curve.best(0)).toBeCloseTo(16);
    expect(curve.top(0)).toBeCloseTo(32);
  });

  it('knows a load after a dozen answers, and forgets it within minutes', () => {
    const curve = new ThroughputCurve();
    measure(curve, 8, { count: 11 });
    expect(curve.best(0)).toBeNull();
    measure(curve, 8, { count: 29 });
    expect(curve.isKnown({ from: 7, to: 9 }, 30_000)).toBe(true);
    expect(curve.isKnown({ from: 9, to: 20 }, 30_000)).toBe(false);
    expect(curve.best(120_000)).toBeNull();
  });

  it('follows a backend that becomes slower', () => {
    const curve = new ThroughputCurve();
    for (const load of [8, 16, 32]) measure(curve, load, { knee: 32, count: 500 });
    expect(curve.best(0)).toBeCloseTo(32);
    for (const load of [8, 16, 32]) measure(curve, load, { knee: 8, count: 500, atMs: 1_000 });
    expect(curve.best(1_000)).toBeCloseTo(8);
  });

  it('forgets loads above a cut', () => {
    const curve = new ThroughputCurve();
    for (const load of [8, 16, 32]) measure(curve, load, { knee: 32 });
    curve.forgetAbove(20);
    expect(curve.top(0)).toBeCloseTo(16);
  });
});
