import { firstTimeSliceMs, timeSliceMs } from '../../../core/chunks/time-slice';

describe('time slices', () => {
  it.each([
    [0, 0, 15_000],
    [150_000, 0, 15_000],
    [600_000, 1_000, 60_000],
    [86_400_000, 1_000, 300_000],
    [0, 10_000, 40_000],
    [86_400_000, 120_000, 480_000],
  ])(
    'last a tenth of the age of the batch (%d ms) and at least 4 × p95 (%d ms): %d ms',
    (batchAgeMs, p95Ms, expected) => {
      expect(timeSliceMs({ batchAgeMs, p95Ms })).toBe(expected);
    },
  );

  it('end one after the other in the first round of the lanes', () => {
    expect([0, 1, 2, 3].map((lane) => firstTimeSliceMs(20_000, lane, 4))).toEqual([
      5_000, 10_000, 15_000, 20_000,
    ]);
  });
});
