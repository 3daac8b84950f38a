import { outputLength } from '../../../simulator/engine/output-length';

describe('the length of an answer', () => {
  const lengths = (seed: number): number[] =>
    Array.from({ length: 20_000 }, (_, i) => outputLength(i, { median: 200, sigma: 0.8, seed }));

  it('is the median without a spread', () => {
    expect(outputLength(7, { median: 200, sigma: 0, seed: 1 })).toBe(200);
  });

  it('is lognormally distributed over requests', () => {
    const logs = lengths(1)
      .map(Math.log)
      .sort((a, b) => a - b);
    const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / logs.length;
    expect(logs[logs.length / 2]).toBeCloseTo(Math.log(200), 1);
    expect(Math.sqrt(variance)).toBeCloseTo(0.8, 1);
    // The share within one standard deviation.
    const within = logs.filter((log) => Math.abs(log - mean) < 0.8).length / logs.length;
    expect(within).toBeCloseTo(0.683, 1);
  });

  it('depends on the request and the seed alone', () => {
    expect(lengths(1)).toEqual(lengths(1));
    expect(lengths(1)).not.toEqual(lengths(2));
  });

  it('is at least one token and at most a million', () => {
    const extreme = { median: 1, sigma: 5, seed: 0 };
    const all = Array.from({ length: 1_000 }, (_, i) => outputLength(i, extreme));
    expect(Math.min(...all)).toBe(1);
    const long = { median: 1_000_000, sigma: 5, seed: 0 };
    expect(Math.max(...Array.from({ length: 100 }, (_, i) => outputLength(i, long)))).toBe(1e6);
  });
});
