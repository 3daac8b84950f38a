import { markRuns } from '../../../core/plan/run-marks';

/** The marks of lines that share so much with the line before each; the first number counts for nothing. */
function marksOf(shared: readonly number[]): number[] {
  const marks = new Uint8Array(shared.length);
  const sharedWithPrevious = (place: number) => shared[place]!;
  markRuns(marks, { from: 0, to: shared.length, sharedWithPrevious });
  return [...marks];
}

describe('the marks of runs', () => {
  it('begin a run for each document', () => {
    // Two documents of 40 blocks after a system prompt of eight.
    expect(marksOf([0, 48, 48, 8, 48, 48])).toEqual([1, 0, 0, 1, 0, 0]);
  });

  it('keep one leader for a document if some questions about it begin alike', () => {
    expect(marksOf([0, 49, 48, 50, 48, 49])).toEqual([1, 0, 0, 0, 0, 0]);
  });

  it('begin a run for a document within what its neighbours share too', () => {
    expect(marksOf([0, 10, 10, 10, 13, 13, 10, 10])).toEqual([1, 0, 0, 1, 0, 0, 0, 0]);
    expect(marksOf([0, 10, 10, 12, 12])).toEqual([1, 0, 0, 0, 0]);
  });

  it('tell lines that share nothing from runs', () => {
    expect(marksOf([0, 0, 0, 4, 0, 0, 4])).toEqual([2, 0, 1, 0, 2, 1, 0]);
    expect(marksOf([0])).toEqual([2]);
  });

  it('leave the places of other hashes alone', () => {
    const marks = new Uint8Array(5);
    markRuns(marks, { from: 1, to: 4, sharedWithPrevious: () => 1 });
    expect([...marks]).toEqual([0, 1, 0, 0, 0]);
  });
});
