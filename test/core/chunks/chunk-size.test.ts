import fc from 'fast-check';
import {
  timeSliceMs,
  chunkSize,
  firstTimeSliceMs,
  MAX_CHUNK_ENTRIES,
} from '../../../core/chunks/chunk-size';
import { laneCount } from '../../../core/chunks/lanes';
import { priorityOf } from '../../../core/chunks/priority';

describe('chunkSize', () => {
  it.each([
    [{ remaining: 50_000, lanes: 4, lastRatePerSec: null }, 6_250],
    [{ remaining: 1_000_000, lanes: 4, lastRatePerSec: null }, 10_000],
    [{ remaining: 200, lanes: 4, lastRatePerSec: null }, 64],
    [{ remaining: 20, lanes: 4, lastRatePerSec: null }, 20],
    [{ remaining: 200, lanes: 4, lastRatePerSec: 1 }, 25],
    [{ remaining: 50, lanes: 4, lastRatePerSec: 0.1 }, 8],
    [{ remaining: 50_000, lanes: 32, lastRatePerSec: 700 }, 1_400],
    [{ remaining: 50_000, lanes: 32, lastRatePerSec: 9_000 }, 2_000],
    [{ remaining: 0, lanes: 4, lastRatePerSec: 5 }, 0],
  ])('%j is %d', (input, expected) => {
    expect(chunkSize(input)).toBe(expected);
  });

  it('cuts any plan to its end with whole chunks within the bounds', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500_000 }),
        fc.integer({ min: 1, max: 32 }),
        fc.option(fc.double({ min: 0, max: 50_000, noNaN: true })),
        (total, lanes, lastRatePerSec) => {
          let remaining = total;
          let chunks = 0;
          while (remaining > 0) {
            const size = chunkSize({ remaining, lanes, lastRatePerSec });
            expect(Number.isInteger(size)).toBe(true);
            expect(size).toBeGreaterThanOrEqual(Math.min(remaining, 8));
            expect(size).toBeLessThanOrEqual(Math.min(remaining, MAX_CHUNK_ENTRIES));
            remaining -= size;
            expect(++chunks).toBeLessThan(2_000);
          }
          expect(remaining).toBe(0);
        },
      ),
    );
  });
});

describe('boxes', () => {
  it.each([
    [0, 0, 15_000],
    [150_000, 0, 15_000],
    [600_000, 1_000, 60_000],
    [86_400_000, 1_000, 300_000],
    [0, 10_000, 40_000],
    [86_400_000, 120_000, 480_000],
  ])('age %d ms and p95 %d ms give %d ms', (batchAgeMs, p95Ms, expected) => {
    expect(timeSliceMs({ batchAgeMs, p95Ms })).toBe(expected);
  });

  it('end one after the other in the first round', () => {
    expect([0, 1, 2, 3].map((lane) => firstTimeSliceMs(20_000, lane, 4))).toEqual([
      5_000, 10_000, 15_000, 20_000,
    ]);
  });
});

describe('laneCount', () => {
  it.each([
    [127, [], 32, 1],
    [127, ['w1', 'w2'], 32, 1],
    [128, [], 32, 4],
    [128, ['w1'], 32, 4],
    [50_000, ['w1', 'w2', 'w1', 'w3'], 32, 8],
    [50_000, ['w1', 'w2', 'w3'], 5, 5],
    [50_000, [], 1, 1],
  ])('%d lines, %j, at most %d: %d lanes', (totalLines, recentWorkers, lanesPerModel, expected) => {
    expect(laneCount({ totalLines, recentWorkers, lanesPerModel })).toBe(expected);
  });
});

describe('priorityOf', () => {
  it.each([
    [10_000, null, 3],
    [10_000, 1_000, 4],
    [8_000, 1_000, 3],
    [2_000, 1_000, 3],
    [1_999, 1_000, 2],
    [-1, 0, 2],
    [10_000, 0, 4],
  ])('%d ms left for %s ms of work is %d', (leftMs, remainingMs, expected) => {
    expect(priorityOf({ nowMs: 5, deadlineMs: 5 + leftMs, remainingMs })).toBe(expected);
  });
});
