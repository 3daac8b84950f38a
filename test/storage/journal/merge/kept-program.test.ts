import { KeptProgram } from '../../../../storage/journal/merge/kept-program';
import { growTo, type MergeProgram } from '../../../../core/journal/merge-program';

function take(programs: KeptProgram): MergeProgram {
  const program = programs.take();
  if (program === null) throw new Error('Node cannot run the program');
  return program;
}

describe('the program of a merge', () => {
  afterEach(() => jest.useRealTimers());

  it('and its memory are used again by the next merge, never by two at once', () => {
    const programs = new KeptProgram();
    const first = take(programs);
    const second = take(programs);
    expect(second).not.toBe(first);
    expect(growTo(first, 1_000_000)).toBe(true);
    programs.giveBack(first);
    const third = take(programs);
    expect(third).toBe(first);
    expect(third.memory.buffer.byteLength).toBeGreaterThanOrEqual(1_000_000);
    expect(take(programs)).not.toBe(third);
  });

  it('is the latest one, and is dropped after a while without a merge', () => {
    jest.useFakeTimers();
    const programs = new KeptProgram(1_000);
    const [first, second] = [take(programs), take(programs)];
    programs.giveBack(first);
    jest.advanceTimersByTime(900);
    programs.giveBack(second);
    jest.advanceTimersByTime(900);
    expect(take(programs)).toBe(second);
    programs.giveBack(second);
    jest.advanceTimersByTime(1_000);
    expect(take(programs)).not.toBe(second);
  });

  it('has no memory that Node cannot give', () => {
    expect(growTo(take(new KeptProgram()), 2 ** 33)).toBe(false);
  });
});
