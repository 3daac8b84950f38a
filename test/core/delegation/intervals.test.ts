import fc from 'fast-check';
import { capacityDelayMs, harvestDelayMs, pollDelayMs } from '../../../core/delegation/intervals';

const MINUTE = 60_000;
const poll = (over: Partial<Parameters<typeof pollDelayMs>[0]>) =>
  pollDelayMs({
    ...{ ageMs: 0, initialMs: 30_000, maxMs: 10 * MINUTE, allDone: false, random: 0.5 },
    ...over,
  });

describe('the time until the next status call', () => {
  it.each([
    ['of a new job', 0, 30_000],
    ['of a job of 20 minutes', 20 * MINUTE, 2 * MINUTE],
    ['of a job of a day', 1_440 * MINUTE, 10 * MINUTE],
  ])('%s is a tenth of its age within bounds', (_, ageMs, expected) => {
    expect(poll({ ageMs })).toBe(expected);
  });

  it('is 5 s when all lines are done', () => {
    expect(poll({ ageMs: 1_440 * MINUTE, allDone: true })).toBe(5_000);
  });

  it('varies by at most 10 %, and is never shorter than the provider asks for', () => {
    const times = { ageMs: fc.nat(1e9), minMs: fc.nat(1e6), retryAfterMs: fc.nat(1e6) };
    const random = fc.double({ min: 0, max: 0.999, noNaN: true });
    fc.assert(
      fc.property(fc.record(times), random, ({ ageMs, minMs, retryAfterMs }, chance) => {
        const middle = poll({ ageMs });
        const varied = poll({ ageMs, random: chance });
        expect(Math.abs(varied - middle)).toBeLessThanOrEqual(middle / 10 + 1);
        const asked = poll({ ageMs, minMs, retryAfterMs, random: chance });
        expect(asked).toBe(Math.max(varied, minMs, retryAfterMs));
      }),
    );
  });

  it('after a cancel is a fifth of the time since then, within 1 s and 30 s', () => {
    expect([-5, 0, 25_000, 12 * MINUTE].map(harvestDelayMs)).toEqual([1_000, 1_000, 5_000, 30_000]);
  });
});

describe('the pause of a job without capacity', () => {
  it('doubles from 60 s to 10 min', () => {
    const pauses = [1, 2, 3, 4, 5, 60].map((refusals) => capacityDelayMs(refusals, null));
    expect(pauses).toEqual([1, 2, 4, 8, 10, 10].map((minutes) => minutes * MINUTE));
  });

  it('is what the provider asks for, but at least 1 s', () => {
    expect([7_000, 0].map((asked) => capacityDelayMs(3, asked))).toEqual([7_000, 1_000]);
  });
});
