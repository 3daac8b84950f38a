import fc from 'fast-check';
import { LeaderFirst } from '../../../core/plan/leader-first';

const open = (marks: readonly number[], answered: readonly number[] = [], bytes = 1_024) =>
  new LeaderFirst({
    marks: Uint8Array.from(marks),
    isAnswered: (index) => answered.includes(index),
    lengthOf: () => bytes,
  });

/** The same after its start: the first try has ended. */
function started(...chunk: Parameters<typeof open>): LeaderFirst {
  const lines = open(...chunk);
  lines.onEnded(-1);
  return lines;
}

/** Takes and sends `count` lines at one moment. */
function send(lines: LeaderFirst, count: number, nowMs: number): (number | null)[] {
  return Array.from({ length: count }, () => {
    const line = lines.take(nowMs);
    if (line !== null) lines.onSent(line, nowMs);
    return line;
  });
}

describe('the order of lines with leaders', () => {
  it('sends the first line of each run before the followers of any', () => {
    const lines = started([1, 0, 0, 1, 0, 1]);
    expect(send(lines, 6, 0)).toEqual([0, 3, 5, 1, 2, 4]);
    expect(lines.isEmpty).toBe(true);
    expect(lines.take(0)).toBeNull();
  });

  it('lets followers go when their leader has ended', () => {
    const lines = open([1, 0, 0, 1, 0, 0]);
    expect(send(lines, 2, 0)).toEqual([0, 3]);
    lines.onEnded(3);
    expect(send(lines, 1, 0)).toEqual([4]);
    lines.onEnded(0);
    expect(send(lines, 3, 0)).toEqual([1, 2, 5]);
  });

  it('lets followers go 250 ms after their leader was sent, not after it was taken', () => {
    const lines = open([1, 0, 1, 0]);
    expect(lines.take(0)).toBe(0);
    lines.onSent(0, 10_000);
    expect(lines.take(10_249)).toBe(2);
    expect(lines.take(10_250)).toBe(1);
  });

  it('holds nothing back if there is nothing else to send', () => {
    expect(send(started([1, 0, 0, 0]), 4, 0)).toEqual([0, 1, 2, 3]);
  });

  it('has no leaders among lines of less than 1,024 bytes', () => {
    expect(send(open([1, 0, 0, 1, 0], [], 1_023), 5, 0)).toEqual([0, 1, 2, 3, 4]);
  });

  it('waits for the leader when it begins, until a try ends', () => {
    const lines = open([1, 0, 0, 1, 0]);
    expect(lines.startEndsMs).toBeNull();
    expect(send(lines, 3, 10_000)).toEqual([0, 3, null]);
    expect(lines.isEmpty).toBe(false);
    lines.onEnded(3);
    // The followers of the other leader may go now, and then those of the first: nothing else is left.
    expect(send(lines, 3, 10_001)).toEqual([4, 1, 2]);
  });

  it('waits for the leader when it begins, 250 ms at most', () => {
    const lines = open([1, 0, 0, 1, 0]);
    expect(send(lines, 3, 10_000)).toEqual([0, 3, null]);
    expect(lines.startEndsMs).toBe(10_250);
    expect(lines.take(10_249)).toBeNull();
    expect(send(lines, 4, 10_250)).toEqual([1, 2, 4, null]);
  });

  it('waits at its start only', () => {
    const lines = open([2, 1, 0, 0]);
    expect(send(lines, 1, 0)).toEqual([0]);
    expect(send(lines, 3, 251)).toEqual([1, 2, 3]);
  });

  it('keeps plan order for lines that share nothing', () => {
    expect(send(started([2, 0, 0, 0, 1, 0]), 6, 0)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('looks at most four runs and 256 lines ahead', () => {
    const pairs = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 1 : 0));
    expect(send(started(pairs), 6, 0)).toEqual([0, 2, 4, 6, 8, 1]);
    const long = [1, ...new Array<number>(299).fill(0), 1, 0];
    expect(send(started(long), 3, 0)).toEqual([0, 1, 2]);
  });

  it('makes the first open line the leader if earlier ones are answered', () => {
    expect(send(started([1, 0, 0, 0, 1, 0], [0, 1, 4]), 3, 0)).toEqual([2, 5, 3]);
  });

  it('takes each open line once, whatever ends when', () => {
    const step = fc.record({ waitMs: fc.nat(200), ends: fc.nat() });
    const marks = fc.array(fc.constantFrom(0, 0, 0, 1, 2), { maxLength: 60 });
    fc.assert(
      fc.property(marks, fc.array(step), fc.array(fc.nat(59)), (all, steps, answered) => {
        const lines = open(all, answered);
        const taken: number[] = [];
        let nowMs = 0;
        for (let i = 0; !lines.isEmpty; i++) {
          const { waitMs, ends } = steps[i % Math.max(1, steps.length)] ?? { waitMs: 0, ends: 0 };
          nowMs += waitMs;
          let line = lines.take(nowMs);
          if (line === null) {
            expect(lines.startEndsMs).toBeGreaterThan(nowMs);
            nowMs = lines.startEndsMs ?? 0;
            line = lines.take(nowMs);
          }
          if (line === null) throw new Error('a line is open, but none was taken');
          taken.push(line);
          if (ends % 3 > 0) lines.onSent(line, nowMs);
          if (ends % 2 === 0) lines.onEnded(taken[ends % taken.length]!);
        }
        const expected = all.map((_, index) => index).filter((index) => !answered.includes(index));
        expect(taken.sort((a, b) => a - b)).toEqual(expected);
        expect(lines.take(nowMs)).toBeNull();
      }),
    );
  });
});
