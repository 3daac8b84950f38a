import fc from 'fast-check';
import { chunkSize, firstChunkSize, MAX_CHUNK_ENTRIES } from '../../../core/chunks/chunk-size';

describe('chunkSize', () => {
  it.each([
    [{ remaining: 50_000, lanes: 4, lastRatePerSec: null }, 6_250],
    [{ remaining: 50_000, lanes: 6, lastRatePerSec: null, rounds: 1 }, 8_334],
    [{ remaining: 1_000_000, lanes: 4, lastRatePerSec: null }, 10_000],
    [{ remaining: 200, lanes: 4, lastRatePerSec: null }, 64],
    [{ remaining: 20, lanes: 4, lastRatePerSec: null }, 20],
    [{ remaining: 200, lanes: 4, lastRatePerSec: 1 }, 25],
    [{ remaining: 50, lanes: 4, lastRatePerSec: 0.1 }, 8],
    [{ remaining: 50_000, lanes: 32, lastRatePerSec: 700 }, 1_400],
    [{ remaining: 50_000, lanes: 32, lastRatePerSec: 9_000 }, 2_000],
    [{ remaining: 0, lanes: 4, lastRatePerSec: 5 }, 0],
  ])('for %j is %d', (input, expected) => {
    expect(chunkSize(input)).toBe(expected);
  });

  it('cuts any plan completely, with chunks within the bounds', () => {
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

describe('firstChunkSize', () => {
  it('grows from lane to lane, up to a whole chunk', () => {
    expect([0, 1, 2, 3].map((lane) => firstChunkSize(2_500, lane, 4))).toEqual([
      625, 1_250, 1_875, 2_500,
    ]);
  });

  it('is at least 64 entries, and never more than a chunk', () => {
    expect([0, 1, 2, 3].map((lane) => firstChunkSize(100, lane, 4))).toEqual([64, 64, 75, 100]);
    expect(firstChunkSize(20, 0, 4)).toBe(20);
    expect(firstChunkSize(500, 0, 1)).toBe(500);
  });
});
